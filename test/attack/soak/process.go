package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a program that cannot outlive this one.
type process struct {
	name   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and its output is read

	// expected is set before the soak ends the process itself.
	expected atomic.Bool
}

// program is what to start, and where its output goes.
type program struct {
	name string
	path string
	env  []string
	log  string          // file for what it writes to standard error
	read func(io.Reader) // of its standard output; nil: that goes to the log, too
}

// launcher starts all processes from one thread, which lives as long as this
// process: the kernel kills a child when the thread that made it is gone.
type launcher struct {
	once  sync.Once
	tasks chan func()
}

func (l *launcher) do(task func()) {
	l.once.Do(func() {
		l.tasks = make(chan func())
		go func() {
			runtime.LockOSThread()
			for task := range l.tasks {
				task()
			}
		}()
	})
	done := make(chan struct{})
	l.tasks <- func() {
		defer close(done)
		task()
	}
	<-done
}

// launch is that of this process.
var launch launcher

// startProcess starts a program.
func startProcess(p program) (*process, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	cmd := exec.Command(p.path)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.env, log, log, attributes()
	var reader, writer *os.File
	if p.read != nil {
		if reader, writer, err = os.Pipe(); err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", p.name, err), log.Close())
		}
		cmd.Stdout = writer
	}
	launch.do(func() { err = cmd.Start() })
	// The child has copies of its own.
	err = errors.Join(err, log.Close())
	if writer != nil {
		err = errors.Join(err, writer.Close())
	}
	if err != nil {
		if reader != nil {
			err = errors.Join(err, reader.Close())
		}
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	started := &process{name: p.name, cmd: cmd, exited: make(chan struct{})}
	go started.wait(reader, p.read)
	return started, nil
}

func (p *process) wait(reader *os.File, read func(io.Reader)) {
	defer close(p.exited)
	if read != nil {
		read(reader)
		_ = reader.Close() // it was only read
	}
	_ = p.cmd.Wait() // says the same as the state of the process
}

// ended describes how a process has ended. Call it after exited.
func (p *process) ended() string { return p.cmd.ProcessState.String() }

// signal sends a signal unless the process has ended.
func (p *process) signal(s syscall.Signal) {
	_ = p.cmd.Process.Signal(s) // an error means that it has ended
}

// kill ends a process like a crash and waits for its end.
func (p *process) kill() {
	p.expected.Store(true)
	p.signal(syscall.SIGKILL)
	<-p.exited
}

// stopLimit is how long a process may take to end after SIGTERM: its grace
// period, and what a busy machine adds.
const stopLimit = 30 * time.Second

// stop ends a process with SIGTERM. One that does not end in time, or not with
// status 0, is an error.
func (p *process) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	p.expected.Store(true)
	p.signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("%s did not end within %s of SIGTERM", p.name, stopLimit)
	}
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("%s did not stop cleanly: %s", p.name, p.ended())
	}
	return nil
}
