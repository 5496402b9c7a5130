package eventqueue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// runToItsBound runs a worker that nobody stops, and returns when it has stopped
// itself.
func (r *rig) runToItsBound(config eventqueue.WorkerConfig) {
	r.t.Helper()
	config.Observe, config.Logger = r.outcomes.add, testenv.Logger(r.t)
	worker, err := eventqueue.NewWorker(r.queue, r.store, r.notifier, r.handlers, config)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx := testenv.Context(r.t)
	if err := worker.Run(ctx); err != nil || ctx.Err() != nil {
		r.t.Fatalf("the worker ended with %v, its context with %v", err, ctx.Err())
	}
}

func (r *rig) many(n int) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.event(`1`)
	}
	return events
}

// TestABoundedWorkerTakesNoMore drains a backlog in runs of seven, through more
// and through fewer slots than that. Half of the notifications are for events
// that are gone: they do not count.
func TestABoundedWorkerTakesNoMore(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"one slot": 1, "few slots": 3, "with spare slots": 16, "many slots": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
			for range 20 {
				gone := r.emit(r.event(`0`), r.event(`1`))[0]
				r.exec(`DELETE FROM events_v2 WHERE id = $1`, gone)
			}
			for _, left := range []int{13, 6} {
				r.runToItsBound(eventqueue.WorkerConfig{Concurrency: concurrency, MaxEvents: 7})
				if n, unharmed := r.waiting(), one[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = 0 AND locked_at IS NULL`); n != left || unharmed != left {
					t.Errorf("%d wait, %d of them unharmed, want %d", n, unharmed, left)
				}
				if n := r.outcomes.count(machine.Claimed); n != 20-left {
					t.Errorf("%d were claimed, want %d", n, 20-left)
				}
			}
			r.runToItsBound(eventqueue.WorkerConfig{Concurrency: concurrency, MaxEvents: 6})
			if n, m := r.waiting(), r.notifier.Ready(); n != 0 || m > 20 {
				t.Errorf("%d wait, and %d notifications", n, m)
			}
		})
	}
}

// TestABoundLetsRunningHandlersFinish has no grace period: a worker that stopped
// when it had claimed its last event would cancel it.
func TestABoundLetsRunningHandlersFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	let := make(chan struct{})
	r.handle(func(ctx context.Context, _ *eventqueue.Run) error {
		select {
		case <-let:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, quick())
	r.emit(r.many(10)...)
	var ran sync.WaitGroup
	ran.Go(func() {
		r.runToItsBound(eventqueue.WorkerConfig{MaxEvents: 4, GracePeriod: -1, Heartbeat: 10 * time.Millisecond})
	})
	r.outcomes.await(t, machine.Claimed, 4)
	// The worker goes on: it renews the locks of what runs.
	claimed := one[time.Time](r, `SELECT max(locked_at) FROM events_v2`)
	testenv.Eventually(t, "the locks are renewed", func() bool {
		return one[bool](r, `SELECT min(locked_at) > $1 FROM events_v2 WHERE locked_at IS NOT NULL`, claimed)
	})
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = 0`); n != 6 {
		t.Errorf("%d events were not claimed, want 6", n)
	}
	close(let)
	ran.Wait()
	if n, m := r.outcomes.count(machine.ExecutesToCompletion), r.outcomes.count(machine.Claimed); n != 4 || m != 4 {
		t.Errorf("%d of %d claimed events completed, want 4 of 4", n, m)
	}
	if n, m := r.waiting(), r.notifier.Ready(); n != 6 || m != 6 {
		t.Errorf("%d events and %d notifications wait, want 6 of each", n, m)
	}
}

// TestABoundCountsEveryClaim: an event that fails and is run again has had two.
func TestABoundCountsEveryClaim(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var runs atomic.Int32
	r.handle(func(context.Context, *eventqueue.Run) error {
		if runs.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	}, quick())
	r.emit(r.event(`1`))
	r.runToItsBound(eventqueue.WorkerConfig{MaxEvents: 2})
	if n := r.waiting(); runs.Load() != 2 || n != 0 {
		t.Errorf("%d runs, %d waiting; want 2 and 0", runs.Load(), n)
	}
}

// TestTheShareOfOthersIsWithinTheBound fills a bounded worker with one canvas, so
// that it finds the events of another one by itself.
func TestTheShareOfOthersIsWithinTheBound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := eventqueue.CanvasID{0xca, 0x17, 15: 2}
	let := make(chan struct{})
	var once sync.Once
	r.handle(func(_ context.Context, run *eventqueue.Run) error {
		if run.Canvas == other {
			once.Do(func() { close(let) })
		}
		<-let
		return nil
	}, quick())
	events := r.many(60)
	for i := range events[55:] {
		events[55+i].Canvas = other
	}
	r.emit(events...)
	r.runToItsBound(eventqueue.WorkerConfig{Concurrency: 32, MaxEvents: 40})
	if n, m := r.outcomes.count(machine.Claimed), r.waiting(); n != 40 || m != 20 {
		t.Errorf("%d claimed, %d waiting; want 40 and 20", n, m)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE attempts > 0 OR locked_at IS NOT NULL`); n != 0 {
		t.Errorf("%d of those that wait were touched", n)
	}
}

// TestAWorkerStopsWhenItsTimeIsOver gives back what runs then.
func TestAWorkerStopsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(ctx context.Context, _ *eventqueue.Run) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, quick())
	r.emit(r.many(3)...)
	for r.outcomes.count(machine.Released) == 0 { // on a busy machine the time may be over before
		r.runToItsBound(eventqueue.WorkerConfig{TTL: 200 * time.Millisecond, MaxEvents: 2, GracePeriod: -1})
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE locked_at IS NULL AND retries = 0 AND attempts <= 1`); n != 3 {
		t.Errorf("%d of 3 events are unharmed", n)
	}
	if n, m := r.outcomes.count(machine.Claimed), r.outcomes.count(machine.Released); n != m || n > 2 {
		t.Errorf("%d claimed, %d released; want the same, and at most 2", n, m)
	}
}

// TestABoundKeepsNoSlots: what a bounded worker may not use stays free for later.
func TestABoundKeepsNoSlots(t *testing.T) {
	t.Parallel()
	taken, free, left, err := eventqueue.TakeBounded(t.Context(), 8, 5, 2)
	if taken != 5 || free != 8 || left != 2 || err != nil {
		t.Errorf("%d taken, then %d free and %d left, %v; want 5, 8, 2, none", taken, free, left, err)
	}
}

func TestBoundsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]eventqueue.WorkerConfig{
		"MaxEvents is -1: it must not be negative; 0 means no bound": {MaxEvents: -1},
		"TTL is -1s: it must not be negative; 0 means no bound":      {TTL: -time.Second},
	} {
		if err := config.Validate(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
