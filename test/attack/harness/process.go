package harness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// Process is a program that cannot outlive this one. Its methods are safe for
// concurrent use.
type Process struct {
	Name string // as given to Start
	Log  string // the file that it writes to
	PID  int

	Exited chan struct{} // closed when the program has ended
	Status int           // its exit status as a shell has it; read after Exited

	pipe *os.File
}

// Start runs a program with arguments; what it prints is appended to the file
// log. It blocks for as long as a shell needs to fork.
func Start(name, program, log string, env []string, args ...string) (*Process, error) {
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", guard, "guard", log, program}, args...)...)
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
	p := &Process{Name: name, Log: log, pipe: pipe, Exited: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		p.PID, err = strconv.Atoi(strings.TrimSpace(line))
	}
	go p.wait(cmd)
	if err != nil {
		_ = pipe.Close() // which ends the program
		<-p.Exited
		return nil, fmt.Errorf("start %s: the guard does not say its process: %w", name, err)
	}
	return p, nil
}

func (p *Process) wait(cmd *exec.Cmd) {
	_ = cmd.Wait() // says the same as the status
	p.Status = cmd.ProcessState.ExitCode()
	_ = p.pipe.Close() // nobody reads it any more
	close(p.Exited)
}

// Signal sends a signal unless the program has ended.
func (p *Process) Signal(s syscall.Signal) {
	select {
	case <-p.Exited:
	default:
		_ = syscall.Kill(p.PID, s) // an error means that it has just ended
	}
}

// Started reports whether the program has logged that it works.
func (p *Process) Started() bool {
	text, err := os.ReadFile(p.Log)
	return err == nil && strings.Contains(string(text), ` started"`)
}

// Terminate ends the program with SIGTERM, and with SIGKILL when it has not ended
// after so long. It returns false when it had to be killed.
func (p *Process) Terminate(within time.Duration) bool {
	p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.Exited:
		return true
	case <-timer.C:
		p.Kill()
		return false
	}
}

// Kill ends the program like a crash and returns when it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}

// KillTree ends a server at once with all of its children, like a crash of the
// machine that it runs on. Where there is no /proc only the server is killed.
func KillTree(pid int) {
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
