package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// guard runs a program and kills it when its own standard input, a pipe that
// only this process holds, comes to its end. A stopped program dies of SIGKILL,
// too. The shell is the only one that waits for the program, and ends the
// watching first, so that no other process of the same number is ever hit.
const guard = `
log=$1; shift
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
program=$!
( read -r word <&3; kill -s KILL "$program" ) </dev/null >/dev/null 2>&1 &
watch=$!
echo "$program"
wait "$program"
status=$?
kill -s KILL "$watch" 2>/dev/null
wait "$watch" 2>/dev/null
exit "$status"
`

// process is a program that cannot outlive this one.
type process struct {
	name string // of this one process: no other one of the run has it
	log  string
	pid  int
	pipe *os.File

	exited chan struct{} // closed when the program has ended
	status int           // its exit status as a shell has it; read after exited
}

// startProcess runs a program; what it prints is appended to the file log. It
// blocks for as long as a shell needs to fork.
func startProcess(name, program, log string, env []string) (*process, error) {
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command("/bin/sh", "-c", guard, "guard", log, program)
	cmd.Env, cmd.Stdin = env, stdin
	// What a terminal sends to its processes is for this program alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err = errors.Join(err, stdin.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), pipe.Close())
	}
	p := &process{name: name, log: log, pipe: pipe, exited: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		p.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	go p.wait(cmd)
	if err != nil {
		_ = pipe.Close() // which ends the program
		<-p.exited
		return nil, fmt.Errorf("start %s: the guard does not say its process: %w", name, err)
	}
	return p, nil
}

func (p *process) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // says the same as the status
	p.status = cmd.ProcessState.ExitCode()
	_ = p.pipe.Close() // nobody reads it any more
	close(p.exited)
}

// signal sends a signal unless the program has ended.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(p.pid, s) // an error means that it has just ended
	}
}

// started tells whether the program has logged that it works.
func (p *process) started() bool {
	text, err := os.ReadFile(p.log)
	return err == nil && strings.Contains(string(text), ` started"`)
}

// killTree ends a server at once with all of its children, like a crash of the
// machine that it runs on. Where there is no /proc only the server is killed.
func killTree(pid int) {
	var children []int
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err == nil {
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	// The children first: they are ours as long as their parent lives.
	for _, child := range children {
		_ = syscall.Kill(child, syscall.SIGKILL) // it may have ended by itself
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}
