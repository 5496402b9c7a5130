package programs

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
	"time"

	"eventsv2/test/testenv"
)

// parentVariable makes this test binary a program that starts a child, says its process and
// waits to be killed.
const parentVariable = "EVENTSV2_PROGRAM_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentVariable); dir != "" {
		beParent(dir)
		return
	}
	testenv.Main(m)
}

// long is longer than any test lasts.
const long = 10 * time.Minute

// script makes a program of a shell script.
func script(t *testing.T, text string) Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // a program of the test
		t.Fatal(err)
	}
	return Program{Name: "child", Path: path, Env: os.Environ(), Log: path + ".log"}
}

func start(t *testing.T, text string) *Process {
	t.Helper()
	p, err := Start(script(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func started(t *testing.T, text string) *Process {
	t.Helper()
	p := start(t, text)
	if err := p.AwaitStart(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	says    = "echo 'child started\"'\n"
	sleeper = says + "exec sleep 600\n"
	// tidy ends with status 0 when it is told to.
	tidy = "trap 'exit 0' TERM\n" + says + "while :; do sleep 0.1; done\n"
)

func TestProcessCanBeKilled(t *testing.T) {
	t.Parallel()
	p := started(t, sleeper)
	p.Kill()
	p.Kill()
	if err := p.Stop(long); err != nil || p.Status != 128+9 {
		t.Errorf("exit status %d and error %v, want that of SIGKILL and none", p.Status, err)
	}
}

func TestFrozenProcessStops(t *testing.T) {
	t.Parallel()
	p := started(t, tidy)
	p.Signal(syscall.SIGSTOP)
	if err := p.Stop(long); err != nil {
		t.Error(err)
	}
}

func TestFailedStopIsReported(t *testing.T) {
	t.Parallel()
	p := started(t, sleeper)
	if err := p.Stop(long); err == nil || !strings.Contains(err.Error(), "exit status 143") {
		t.Errorf("got %v, want the status of an unhandled SIGTERM", err)
	}
}

func TestUnstoppableProcessIsKilled(t *testing.T) {
	t.Parallel()
	p := started(t, "trap '' TERM\n"+sleeper)
	if err := p.Stop(time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end within 1ms") {
		t.Errorf("got %v, want that it did not end", err)
	}
	if p.Running() || p.Status != 128+9 {
		t.Errorf("exit status %d, want that of SIGKILL", p.Status)
	}
}

func TestUnexpectedEndIsReported(t *testing.T) {
	t.Parallel()
	p := start(t, "echo this is why\nexit 3\n")
	err := p.AwaitStart(testenv.Context(t))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "this is why") {
		t.Errorf("got %v, want its status and its last words", err)
	}
	if err := p.Stop(long); err != nil {
		t.Errorf("the same failure is reported twice: %v", err)
	}
}

func TestProcessOutputIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	program := script(t, "echo first\necho 'what is wrong' >&2\necho last\n")
	var read []string
	program.Read = func(from io.Reader) {
		lines := bufio.NewScanner(from)
		for lines.Scan() {
			read = append(read, lines.Text())
		}
	}
	p, err := Start(program)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited
	if said := p.LogText(); strings.Join(read, " ") != "first last" || said != "what is wrong\n" {
		t.Errorf("it was read %q, and the log is %q", read, said)
	}
}

func TestMissingProgramIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := Start(Program{Name: "nobody", Path: filepath.Join(dir, "nobody"), Log: filepath.Join(dir, "log")})
	if err == nil {
		p.Kill()
		t.Fatal("it was started")
	}
	if !strings.Contains(err.Error(), "nobody") {
		t.Errorf("the error %v does not name it", err)
	}
}

func TestEndOfOneProcessBreaksTheFleet(t *testing.T) {
	t.Parallel()
	ctx, broken := context.WithCancelCause(testenv.Context(t))
	f := NewFleet(broken)
	for range 2 { // the second one in the place of the first
		if p := f.Process("child"); p != nil {
			p.Kill()
		}
		if ctx.Err() != nil {
			t.Errorf("an end that was asked for breaks the run: %v", context.Cause(ctx))
		}
		if _, err := f.Start(script(t, sleeper)); err != nil {
			t.Fatal(err)
		}
	}
	f.Process("child").Signal(syscall.SIGKILL)
	<-ctx.Done()
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "child ended by itself") {
		t.Errorf("the run ends with %v", cause)
	}
	if err := f.Stop(long); err == nil {
		t.Error("nobody hears that it did not stop cleanly")
	}
	if err := f.Stop(long); err != nil {
		t.Error("nothing is left to stop:", err)
	}
}

// beParent starts a child, says its process and waits to be killed.
func beParent(dir string) {
	p, err := Start(Program{Name: "child", Path: "/bin/sleep", Args: []string{"600"}, Env: os.Environ(), Log: filepath.Join(dir, "log")})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Signal(syscall.SIGSTOP) // also one that is frozen has to die
	fmt.Println(p.PID)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	parent := exec.CommandContext(testenv.Context(t), os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+t.TempDir())
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
	testenv.Eventually(t, "the child is dead", func() bool { return syscall.Kill(child, 0) != nil })
}

func TestNothingElseConfiguresAProgram(t *testing.T) {
	t.Parallel()
	got := clean([]string{"PATH=/bin", "DATABASE_URL=x", "WORKER_CONCURRENCY=1", "PGPASSWORD=y"})
	if strings.Join(got, " ") != "PATH=/bin PGPASSWORD=y" {
		t.Errorf("got %v", got)
	}
	env := Environment(map[string]string{"PORT": "1", "LOCK_TIMEOUT": "5s"}, map[string]string{"PORT": "0"})
	if got := strings.Join(env[len(env)-2:], " "); got != "LOCK_TIMEOUT=5s PORT=0" {
		t.Errorf("the settings are %s", got)
	}
}
