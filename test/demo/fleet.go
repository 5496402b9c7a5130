package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/setup"
)

// The programs of the fleet.
const (
	programWorker = "worker"
	programCron   = "cron"
)

// readyPoll is how often a log is looked at for the line that says ready.
const readyPoll = 20 * time.Millisecond

// fleet starts and stops the child processes.
type fleet struct {
	dir      string // of programs, logs and handlers files
	env      map[string]string
	handlers []eventqueue.HandlerKey
	target   string // URL, to which the name of a worker is added

	// broken is called when a child ends by itself.
	broken context.CancelCauseFunc

	mu       sync.Mutex
	children []*child
	watchers sync.WaitGroup
}

// startWorker starts a worker with a handlers file of its own: the path of the
// URLs tells the target which worker asks. It blocks until the worker is ready.
func (f *fleet) startWorker(ctx context.Context, name string) error {
	path := filepath.Join(f.dir, name+".yaml")
	if err := writeHandlersFile(path, f.handlers, f.target+"/"+name); err != nil {
		return fmt.Errorf("write the handlers file of %s: %w", name, err)
	}
	return f.start(ctx, name, programWorker, map[string]string{"HANDLERS_FILE": path})
}

// startCron starts a cron process and blocks until it is ready.
func (f *fleet) startCron(ctx context.Context) error { return f.start(ctx, "cron-1", programCron, nil) }

func (f *fleet) start(ctx context.Context, name, program string, more map[string]string) error {
	env := cleanEnvironment(os.Environ())
	for _, settings := range []map[string]string{f.env, more} {
		for key, value := range settings {
			env = append(env, key+"="+value)
		}
	}
	c, err := startChild(name, filepath.Join(f.dir, program), filepath.Join(f.dir, name+".log"), env)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.children = append(f.children, c)
	f.mu.Unlock()
	f.watchers.Go(func() {
		<-c.exited
		if !c.expected.Load() {
			f.broken(c.failure())
		}
	})
	return c.ready(ctx, program+" started")
}

// ready waits until the child logs that it has started. Its port cannot be asked:
// it takes a free one, and any that was chosen here could be taken by then.
func (c *child) ready(ctx context.Context, message string) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(c.log)
		if err == nil && bytes.Contains(text, []byte(message)) {
			c.started.Store(true)
			return nil
		}
		select {
		case <-ticker.C:
		case <-c.exited:
			return c.failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready: %w", c.name, context.Cause(ctx))
		}
	}
}

// kill ends one child like a crash.
func (f *fleet) kill(name string) error {
	f.mu.Lock()
	at := slices.IndexFunc(f.children, func(c *child) bool { return c.name == name })
	if at < 0 {
		f.mu.Unlock()
		return fmt.Errorf("kill %s: there is no such process", name)
	}
	c := f.children[at]
	f.children = slices.Delete(f.children, at, at+1)
	f.mu.Unlock()
	c.kill()
	return c.remove()
}

// stopLimit is how long a child may take to stop, its grace period included.
const stopLimit = 20 * time.Second

// stop ends all children in order, all at once.
func (f *fleet) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	f.mu.Lock()
	children := f.children
	f.children = nil
	f.mu.Unlock()
	errs := make([]error, len(children))
	var stopping sync.WaitGroup
	for i, c := range children {
		stopping.Go(func() { errs[i] = c.stop(ctx) })
	}
	stopping.Wait()
	f.watchers.Wait()
	return errors.Join(errs...)
}

// cleanEnvironment leaves out what configures the programs: only what the demo
// sets counts.
func cleanEnvironment(environment []string) []string {
	ours := make(map[string]bool)
	for field := range reflect.TypeFor[setup.Config]().Fields() {
		ours[field.Tag.Get("env")] = true
	}
	return slices.DeleteFunc(environment, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return ours[name]
	})
}
