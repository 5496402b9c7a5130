package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
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

// played is what became of a scenario: what was measured, why it failed, whether it was only late, and why
// it could not be played on this machine.
type played struct {
	figures, why []string
	late         bool
	skipped      string
}

// play plays one scenario with a rig of its own.
func (s *stage) play(ctx context.Context, one scenario) played {
	ctx, cancel := context.WithTimeoutCause(ctx, playLimit, fmt.Errorf("the scenario took longer than %s", playLimit))
	defer cancel()
	dir := filepath.Join(s.dir, one.name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return played{why: []string{err.Error()}}
	}
	r := &rig{stage: s, name: one.name, dir: dir}
	over := make(chan struct{})
	// A goroutine of its own, which rig.fatal may end.
	go func() {
		defer close(over)
		defer r.close(ctx)
		if err := r.open(ctx); err != nil {
			r.failf("%v", err)
			return
		}
		one.play(ctx, r)
		r.check(ctx)
	}()
	<-over
	return played{r.figures, r.failures, len(r.failures) > 0 && r.late == len(r.failures), r.skipped}
}

// failf records that the scenario failed, and goes on.
func (r *rig) failf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// latef is failf of something that was right and came too late, or may have been due to that.
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

// skipf ends the scenario, which this machine cannot play. It must be called by the goroutine that plays it.
func (r *rig) skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
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

// restLimit is how long everything may take to come to rest after the scenario.
const restLimit = 90 * time.Second

// check has every event judged that was accepted; see doc.go.
func (r *rig) check(ctx context.Context) {
	r.settle(ctx)
	e, err := read(ctx, r.db, r.ids())
	r.must(err)
	r.mu.Lock()
	knows := r.judge
	r.mu.Unlock()
	found, err := knows.judge(&e)
	r.must(err)
	for what, n := range found.times {
		fail := r.failf
		if what == unexplained { // a program that got no processor for the time of a lock has lost it
			fail = r.latef
		}
		fail("%s: %d, first %s", what, n, found.first[what])
	}
	if len(found.evidence) > 0 {
		r.must(os.WriteFile(filepath.Join(r.dir, "evidence.txt"), []byte(strings.Join(found.evidence, "\n")), 0o600))
	}
	r.figure("events=%d", len(knows.ledger))
	if found.extra > 0 {
		r.figure("explained_reruns=%d", found.extra)
	}
}

// settle waits until no event of the ledger is queued, nor what their completion emitted, a while.
func (r *rig) settle(ctx context.Context) {
	ids := r.ids()
	r.eventually(ctx, restLimit, func() bool {
		var left int64
		err := r.db.QueryRow(ctx, `SELECT count(*) FROM events_v2 WHERE id = ANY($1) OR parent_id = ANY($1)`, ids).Scan(&left)
		return err == nil && left == 0
	})
}
