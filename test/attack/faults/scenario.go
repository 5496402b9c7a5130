package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// scenario is one fault and the promise that has to hold under it.
type scenario struct {
	name            string
	acknowledgement string
	// lasts is about how long it takes, to play the longest first.
	lasts time.Duration
	play  func(ctx context.Context, r *rig)
}

// playLimit bounds one scenario.
const playLimit = 7 * time.Minute

// play plays one scenario with a rig of its own. It returns what was measured, and
// why the scenario failed, if it did.
func (s *stage) play(ctx context.Context, one scenario) (figures, why []string, late bool) {
	ctx, cancel := context.WithTimeoutCause(ctx, playLimit, fmt.Errorf("the scenario took longer than %s", playLimit))
	defer cancel()
	dir := filepath.Join(s.dir, one.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, []string{err.Error()}, false
	}
	r := &rig{stage: s, name: one.name, dir: dir}
	played := make(chan struct{})
	// A goroutine of its own, which rig.fatal may end.
	go func() {
		defer close(played)
		defer r.close(ctx)
		if err := r.open(ctx); err != nil {
			r.failf("%v", err)
			return
		}
		one.play(ctx, r)
		r.check(ctx)
	}()
	<-played
	return r.figures, r.failures, len(r.failures) > 0 && r.late == len(r.failures)
}

// failf records that the scenario failed, and goes on.
func (r *rig) failf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// latef is failf of something that was right and came too late.
func (r *rig) latef(format string, args ...any) {
	r.failf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late++
}

// fatalf ends the scenario. It must be called by the goroutine that plays it.
func (r *rig) fatalf(format string, args ...any) {
	r.failf(format, args...)
	runtime.Goexit()
}

// must ends the scenario when something could not be done that belongs to it.
func (r *rig) must(err error) {
	if err != nil {
		r.fatalf("%v", err)
	}
}

// figure notes what was measured, for the line of the scenario.
func (r *rig) figure(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures = append(r.figures, fmt.Sprintf(format, args...))
}
