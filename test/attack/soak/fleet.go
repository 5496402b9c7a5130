package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"eventsv2/test/attack/harness"
)

// The binaries that are built.
const (
	programWorker = "worker"
	programCron   = "cron"
)

// The processes. The long-lived programs live through the whole run, so that what grows in
// them can be seen; the junior is killed and restarted.
const (
	longLivedWorker  = "worker-1"
	juniorWorker     = "worker-2"
	longLivedCron    = "cron"
	longLivedLibrary = "library"
)

func longLived() []string { return []string{longLivedWorker, longLivedCron, longLivedLibrary} }

// fleet runs the processes.
type fleet struct {
	dir  string // of binaries, logs and the handlers file
	env  map[string]string
	read func(io.Reader) // of the library's notes

	// broken is called when a process ends by itself.
	broken context.CancelCauseFunc

	mu       sync.Mutex
	running  map[string]*process
	watchers sync.WaitGroup
}

// environment is that of this process without what configures the programs, and
// with the settings of the fleet.
func (f *fleet) environment(settings map[string]string) []string {
	env := harness.CleanEnvironment()
	for _, from := range []map[string]string{f.env, settings} {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			env = append(env, name+"="+from[name])
		}
	}
	return env
}

// start starts the process of a name.
func (f *fleet) start(name string) error {
	p := program{name: name, log: filepath.Join(f.dir, name+".log")}
	switch name {
	case longLivedLibrary:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		p.path, p.read = self, f.read
		p.env = f.environment(map[string]string{roleVariable: roleLibrary})
	case longLivedCron:
		p.path, p.env = filepath.Join(f.dir, programCron), f.environment(nil)
	default:
		p.path, p.env = filepath.Join(f.dir, programWorker), f.environment(nil)
	}
	started, err := startProcess(p)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[name] = started
	f.watchers.Go(func() { f.watch(started) })
	return nil
}

// watch ends the run when a process ends before it is told to.
func (f *fleet) watch(p *process) {
	<-p.exited
	if !p.expected.Load() {
		f.broken(fmt.Errorf("%s ended by itself: %s", p.name, p.ended()))
	}
}

// process is the last process of a name.
func (f *fleet) process(name string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[name]
}

// stop ends all processes in order.
func (f *fleet) stop(ctx context.Context) error {
	f.mu.Lock()
	running := slices.Collect(maps.Values(f.running))
	f.running = nil // a second call has nothing to do
	f.mu.Unlock()
	errs := make([]error, len(running))
	var stopping sync.WaitGroup
	for i, p := range running {
		stopping.Go(func() {
			p.signal(syscall.SIGCONT) // a stopped one would not end
			errs[i] = p.stop(ctx)
		})
	}
	stopping.Wait()
	f.watchers.Wait()
	return errors.Join(errs...)
}
