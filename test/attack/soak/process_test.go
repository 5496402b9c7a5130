package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eventsv2/test/testenv"
)

// sleeper is a program that waits until it is ended. It says so once it is ready.
func sleeper(t *testing.T) (program, <-chan string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sleeper")
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntrap 'exit 0' TERM\necho ready\nwhile :; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	return program{name: "sleeper", path: path, env: os.Environ(), log: path + ".log", read: func(from io.Reader) {
		line, _ := bufio.NewReader(from).ReadString('\n')
		said <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, from)
	}}, said
}

func TestProcess(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*process) error{
		"killed":  func(p *process) error { p.kill(); return nil },
		"stopped": func(p *process) error { return p.stop(testenv.Context(t)) },
		"frozen, then ended": func(p *process) error {
			p.signal(syscall.SIGSTOP)
			p.signal(syscall.SIGCONT)
			return p.stop(testenv.Context(t))
		},
	} {
		program, said := sleeper(t)
		p, err := startProcess(program)
		if err != nil {
			t.Fatal(err)
		}
		if got := <-said; got != "ready" {
			t.Fatalf("%s: it says %q", how, got)
		}
		if n, err := openFiles(p.cmd.Process.Pid); err != nil || n < 3 {
			t.Errorf("%s: %g files, %v", how, n, err)
		}
		if size, err := privateMemory(p.cmd.Process.Pid); err != nil || size < 4096 {
			t.Errorf("%s: %g bytes, %v", how, size, err)
		}
		if err := end(p); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		select {
		case <-p.exited:
		default:
			t.Errorf("%s: it has not ended", how)
		}
		if !p.expected.Load() {
			t.Errorf("%s: its end counts as unexpected", how)
		}
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := startProcess(program{name: "nobody", path: filepath.Join(dir, "nobody"), log: filepath.Join(dir, "log"), read: func(io.Reader) {}})
	if err == nil {
		p.kill()
		t.Fatal("it was started")
	}
	if !strings.Contains(err.Error(), "nobody") {
		t.Errorf("the error %v does not name it", err)
	}
}

func TestALongLivedProgramThatEndsBreaksTheRun(t *testing.T) {
	t.Parallel()
	program, said := sleeper(t)
	ctx, broken := context.WithCancelCause(testenv.Context(t))
	f := &fleet{dir: filepath.Dir(program.path), running: map[string]*process{}, broken: broken}
	if err := os.Rename(program.path, filepath.Join(f.dir, programCron)); err != nil {
		t.Fatal(err)
	}
	if err := f.start(longLivedCron); err != nil {
		t.Fatal(err)
	}
	_ = said // a cron process is not read
	f.process(longLivedCron).signal(syscall.SIGKILL)
	<-ctx.Done()
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), longLivedCron+" ended by itself") {
		t.Errorf("the run ends with %v", cause)
	}
	f.watchers.Wait()
}

// beParent starts a child, says its process and waits to be killed.
func beParent() {
	dir := os.Getenv(sleeperVariable)
	p, err := startProcess(program{name: "child", path: "/bin/cat", env: os.Environ(), log: filepath.Join(dir, "log"), read: func(from io.Reader) {
		_, _ = io.Copy(io.Discard, from)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.signal(syscall.SIGSTOP) // also one that is frozen has to die
	fmt.Println(p.cmd.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	parent := exec.CommandContext(ctx, os.Args[0])
	parent.Env = append(os.Environ(), sleeperVariable+"="+t.TempDir())
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }() // the parent is dead by then
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(stdout, &child); err != nil {
		t.Fatal("the parent does not say its child:", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err == nil {
		t.Fatal("the parent was not killed")
	}
	testenv.Eventually(t, "the child is dead", func() bool { return dead(child) })
}

// dead reports whether a process is gone, or waits only for somebody to read its
// status.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
