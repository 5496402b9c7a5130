package programs

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
	"time"

	"eventsv2/internal/backoff"
)

// guard runs a program and kills it when its own standard input, a pipe that only the
// process that started it holds, comes to its end. A stopped program dies of SIGKILL, too.
// The shell is the only one that waits for the program, and ends the watching first, so
// that no other process of the same number is ever hit. Descriptor 3 is where the standard
// output of a program goes that has a reader for it.
const guard = `
log=$1; piped=$2; shift 2
exec 4<&0 5>>"$log"
if [ -n "$piped" ]; then exec 6>&3 3>&-; else exec 6>&5; fi
"$@" </dev/null >&6 2>&5 4<&- 5>&- 6>&- &
program=$!
exec 5>&- 6>&-
( read -r word <&4; kill -s KILL "$program" ) </dev/null >/dev/null 2>&1 &
watch=$!
echo "$program"
wait "$program"
status=$?
kill -s KILL "$watch" 2>/dev/null
wait "$watch" 2>/dev/null
exit "$status"
`

// Program describes a program to start.
type Program struct {
	Name string // for messages
	Path string
	Args []string
	Env  []string // see Environment
	// Log is the file that the output is appended to.
	Log string
	// Read reads the standard output to its end. Nil: that goes to the log, as the standard
	// error does.
	Read func(io.Reader)
}

// Process is a program that cannot outlive this one. Its methods are safe for concurrent
// use.
type Process struct {
	Name string // as given to Start
	Log  string // the file that it writes to
	PID  int

	Exited chan struct{} // closed when the program has ended, and its output is read
	Status int           // its exit status as a shell has it; read after Exited

	pipe     *os.File
	starting atomic.Bool // a caller waits for it, in vain so far
	expected atomic.Bool // its end is the doing of this process
	killed   atomic.Bool // likewise
}

// Start starts a program. It blocks for as long as a shell needs to fork.
func Start(p Program) (started *Process, err error) {
	fail := func(err error) (*Process, error) { return nil, fmt.Errorf("start %s: %w", p.Name, err) }
	if _, err := os.Stat(p.Path); err != nil {
		return fail(err)
	}
	stdin, pipe, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", guard, "guard", p.Log, "", p.Path}, p.Args...)...)
	cmd.Env, cmd.Stdin = p.Env, stdin
	// What a terminal sends to its processes is for this program alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var reader *os.File
	if p.Read != nil {
		var writer *os.File
		if reader, writer, err = os.Pipe(); err != nil {
			return fail(errors.Join(err, stdin.Close(), pipe.Close()))
		}
		cmd.Args[5], cmd.ExtraFiles = "3", []*os.File{writer}
	}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	// The shell has copies of its own.
	for _, file := range append(cmd.ExtraFiles, stdin) {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		if reader != nil {
			err = errors.Join(err, reader.Close())
		}
		return fail(errors.Join(err, pipe.Close()))
	}
	started = &Process{Name: p.Name, Log: p.Log, pipe: pipe, Exited: make(chan struct{})}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		started.PID, err = strconv.Atoi(strings.TrimSpace(line))
	}
	go started.wait(cmd, reader, p.Read)
	if err != nil {
		_ = pipe.Close() // which ends the program
		<-started.Exited
		return fail(fmt.Errorf("the guard does not say its process: %w", err))
	}
	return started, nil
}

func (p *Process) wait(cmd *exec.Cmd, reader *os.File, read func(io.Reader)) {
	defer close(p.Exited)
	if read != nil {
		read(reader)
		_ = reader.Close() // it was only read
	}
	_ = cmd.Wait() // says the same as the status
	p.Status = cmd.ProcessState.ExitCode()
	_ = p.pipe.Close() // nobody reads it any more
}

// Running reports whether the program has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Signal sends a signal unless the program has ended.
func (p *Process) Signal(s syscall.Signal) {
	if p.Running() {
		_ = syscall.Kill(p.PID, s) // an error means that it has just ended
	}
}

// Kill ends the program like a crash and returns when it is gone.
func (p *Process) Kill() {
	p.expected.Store(true)
	p.killed.Store(true)
	p.Signal(syscall.SIGKILL)
	<-p.Exited
}

// Terminate ends the program with SIGTERM, also one that is stopped, and with SIGKILL when it
// has not ended after so long. It returns false when it had to be killed.
func (p *Process) Terminate(within time.Duration) bool {
	p.expected.Store(true)
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGCONT)
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

// Stop is Terminate. That it had to be killed, and another status than 0, is an error, but for
// a program that was killed before or was still awaited.
func (p *Process) Stop(within time.Duration) error {
	if p.killed.Load() {
		return nil
	}
	inTime := p.Terminate(within)
	switch {
	case p.starting.Load():
		return nil
	case !inTime:
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.Name, within)
	case p.Status != 0:
		return fmt.Errorf("%s did not stop cleanly: exit status %d", p.Name, p.Status)
	default:
		return nil
	}
}

// LogText returns the log so far; "" if it cannot be read.
func (p *Process) LogText() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return ""
	}
	return string(text)
}

// startedText is in the line that each program logs when it works.
const startedText = ` started"`

// Started reports whether the program has logged that it works.
func (p *Process) Started() bool { return strings.Contains(p.LogText(), startedText) }

// AwaitStart waits until the program has logged that it works. Its port cannot be asked: it
// takes a free one.
func (p *Process) AwaitStart(ctx context.Context) error { return p.Await(ctx, startedText) }

// awaitEvery is how often a log is read for what is awaited.
const awaitEvery = 20 * time.Millisecond

// Await waits until the program has logged a text. That it ends before, or that ctx does, is
// an error with its last words.
func (p *Process) Await(ctx context.Context, text string) error {
	p.starting.Store(true)
	for {
		running := p.Running() // before its log is read: what it says at its end counts
		if strings.Contains(p.LogText(), text) {
			p.starting.Store(false)
			return nil
		}
		if !running {
			return fmt.Errorf("%w, and it has not said %q", p.Failure(), text)
		}
		if !backoff.Sleep(ctx, awaitEvery) {
			return fmt.Errorf("%s does not say %q: %w; its last words:\n%s", p.Name, text, context.Cause(ctx), p.LastWords())
		}
	}
}

// Failure is the error of a program that has ended by itself.
func (p *Process) Failure() error {
	return fmt.Errorf("%s ended by itself with exit status %d; its last words:\n%s", p.Name, p.Status, p.LastWords())
}

// lastWordsBytes is how much of a log an error shows.
const lastWordsBytes = 1500

// LastWords are the end of the log, for a message.
func (p *Process) LastWords() string {
	text := strings.TrimSpace(p.LogText())
	return text[max(len(text)-lastWordsBytes, 0):]
}
