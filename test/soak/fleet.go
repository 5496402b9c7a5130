package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"eventsv2/internal/service"
)

// The binaries that are built.
const (
	programWorker = "worker"
	programCron   = "cron"
)

// The processes. The elders live through the whole run, so that what grows in
// them can be seen; the junior is killed and restarted.
const (
	elderWorker  = "worker-1"
	juniorWorker = "worker-2"
	elderCron    = "cron"
	elderLibrary = "library"
)

func elders() []string { return []string{elderWorker, elderCron, elderLibrary} }

// buildPrograms compiles what the fleet runs into a directory.
func buildPrograms(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "eventsv2/cmd/"+programWorker, "eventsv2/cmd/"+programCron)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build cmd/%s and cmd/%s (run this in the repository, with go on PATH): %w\n%s",
			programWorker, programCron, err, strings.TrimSpace(string(out)))
	}
	return nil
}

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
	ours := make(map[string]bool)
	for field := range reflect.TypeFor[service.Config]().Fields() {
		ours[field.Tag.Get("env")] = true
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return ours[name]
	})
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
	case elderLibrary:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		p.path, p.read = self, f.read
		p.env = f.environment(map[string]string{roleVariable: roleLibrary})
	case elderCron:
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
