package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// keeper starts a program, says its process id and waits for it. Its own
// standard input is a pipe that only the demo holds: when that ends, since the
// demo is dead or done, the keeper kills the program. Only this shell waits for
// the program, and it stops watching first, so that it never kills a later
// process with the same number.
const keeper = `
log=$1
shift
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
pid=$!
( read -r _ <&3; kill -s KILL "$pid" ) </dev/null >/dev/null 2>&1 &
watch=$!
echo "$pid"
wait "$pid"
status=$?
kill -s KILL "$watch"
wait "$watch"
exit "$status"
`

// child is a program that cannot outlive the demo.
type child struct {
	name string
	log  string
	pid  int
	pipe *os.File

	// started is set once the program has said so: from then on it has to stop
	// cleanly.
	started atomic.Bool
	// expected is set before the demo ends the program itself.
	expected atomic.Bool
	exited   chan struct{} // closed when the program has ended
	status   int           // as a shell has it; read after exited
}

// startChild runs a program with the given environment; what it prints goes to
// the file log. It blocks for as long as a shell needs to fork.
func startChild(name, program, log string, env []string) (*child, error) {
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd := exec.Command("/bin/sh", "-c", keeper, "keeper", log, program)
	cmd.Env, cmd.Stdin = env, stdin
	// A session of its own: the Ctrl-C of a terminal is for the demo, which then
	// stops its children in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	err = errors.Join(err, stdin.Close())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), pipe.Close())
	}
	c := &child{name: name, log: log, pipe: pipe, exited: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		c.pid, err = strconv.Atoi(strings.TrimSpace(line))
	}
	go c.wait(cmd)
	if err != nil {
		err = errors.Join(fmt.Errorf("start %s: its shell does not say the process id: %w", name, err), pipe.Close())
		<-c.exited
		return nil, err
	}
	return c, nil
}

func (c *child) wait(cmd *exec.Cmd) {
	// The error of Wait says the same as the status.
	_ = cmd.Wait()
	c.status = cmd.ProcessState.ExitCode()
	close(c.exited)
}

// kill ends the program at once, like a crash, and waits until it is gone.
func (c *child) kill() {
	c.expected.Store(true)
	c.signal(syscall.SIGKILL)
	<-c.exited
}

// stop asks the program to end and waits for it, at most until ctx ends: then it
// is killed. A status other than 0 is an error unless it was still starting.
func (c *child) stop(ctx context.Context) error {
	c.expected.Store(true)
	c.signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-ctx.Done():
		c.kill()
	}
	err := c.pipe.Close()
	if c.status != 0 && c.started.Load() {
		err = errors.Join(fmt.Errorf("%s did not stop cleanly: exit status %d", c.name, c.status), err)
	}
	return err
}

// remove is stop for a child that has been killed.
func (c *child) remove() error {
	<-c.exited
	return c.pipe.Close()
}

func (c *child) signal(s syscall.Signal) {
	select {
	case <-c.exited:
	default:
		// An error means that it has ended meanwhile.
		_ = syscall.Kill(c.pid, s)
	}
}

// logTailBytes is how much of a log an error shows.
const logTailBytes = 1500

// failure is the error of a child that ended by itself.
func (c *child) failure() error {
	return fmt.Errorf("%s ended by itself with exit status %d; its last words:\n%s", c.name, c.status, c.logTail())
}

// logTail is the end of the log; one that cannot be read is empty.
func (c *child) logTail() string {
	file, err := os.Open(c.log)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	if info, err := file.Stat(); err == nil && info.Size() > logTailBytes {
		if _, err := file.Seek(-logTailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
