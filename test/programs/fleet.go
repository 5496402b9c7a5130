package programs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// Fleet is processes that have to live until they are ended: one that ends by itself breaks
// the run. It is safe for concurrent use.
type Fleet struct {
	broken context.CancelCauseFunc

	mu       sync.Mutex
	running  map[string]*Process
	watchers sync.WaitGroup
}

// NewFleet makes an empty fleet. broken is called when a process ends by itself.
func NewFleet(broken context.CancelCauseFunc) *Fleet {
	return &Fleet{broken: broken, running: map[string]*Process{}}
}

// Start starts a program, in the place of an earlier one of its name.
func (f *Fleet) Start(p Program) (*Process, error) {
	started, err := Start(p)
	if err != nil {
		return nil, err
	}
	f.Adopt(started)
	return started, nil
}

// Adopt adds a process that was started by itself, in the place of an earlier one of its name.
func (f *Fleet) Adopt(started *Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[started.Name] = started
	f.watchers.Go(func() {
		<-started.Exited
		if !started.expected.Load() {
			f.broken(started.Failure())
		}
	})
}

// Process is the last process of a name; nil when there is none.
func (f *Fleet) Process(name string) *Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running[name]
}

// Stop ends all processes in order, all at once; see Process.Stop. A second call has nothing
// to do.
func (f *Fleet) Stop(within time.Duration) error {
	f.mu.Lock()
	running := slices.Collect(maps.Values(f.running))
	f.running = map[string]*Process{}
	f.mu.Unlock()
	errs := make([]error, len(running))
	var stopping sync.WaitGroup
	for i, p := range running {
		stopping.Go(func() { errs[i] = p.Stop(within) })
	}
	stopping.Wait()
	f.watchers.Wait()
	return errors.Join(errs...)
}
