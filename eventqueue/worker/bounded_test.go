package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestBoundedWorkerTakesNoMore drains a backlog in runs of seven, through more
// and through fewer slots than that. Half of the notifications are for events
// that are gone: they do not count.
func TestBoundedWorkerTakesNoMore(t *testing.T) {
	t.Parallel()
	for name, concurrency := range map[string]int{"one slot": 1, "few slots": 3, "with spare slots": 16, "many slots": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t)
			r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
			for range 20 {
				gone := r.Emit(r.Event(`0`), r.Event(`1`))[0]
				r.Exec(`DELETE FROM events_v2 WHERE id = $1`, gone)
			}
			most := 20 + r.Notifier.Len() - 40 // an emit whose answer took long notifies twice
			for _, left := range []int{13, 6} {
				r.RunToItsBound(worker.Config{Concurrency: concurrency, MaxEvents: 7})
				if n, unharmed := r.Waiting(), rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = 0 AND locked_at IS NULL`); n != left || unharmed != left {
					t.Errorf("%d wait, %d of them unharmed, want %d", n, unharmed, left)
				}
				if n := r.Outcomes.Count(machine.Claimed); n != 20-left {
					t.Errorf("%d were claimed, want %d", n, 20-left)
				}
			}
			r.RunToItsBound(worker.Config{Concurrency: concurrency, MaxEvents: 6})
			if n, m := r.Waiting(), r.Notifier.Ready(); n != 0 || m > most {
				t.Errorf("%d wait, and %d notifications, want none and %d at most", n, m, most)
			}
		})
	}
}

// TestBoundLetsRunningHandlersComplete has no grace period: a worker that stopped
// when it had claimed its last event would cancel it.
func TestBoundLetsRunningHandlersComplete(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	let := make(chan struct{})
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		select {
		case <-let:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, rig.Quick())
	r.Emit(r.Copies(10)...)
	most := 6 + r.Notifier.Len() - 10 // an emit whose answer took long notifies twice
	var ran sync.WaitGroup
	ran.Go(func() {
		r.RunToItsBound(worker.Config{MaxEvents: 4, GracePeriod: -1, Heartbeat: 10 * time.Millisecond})
	})
	r.Outcomes.Await(t, machine.Claimed, 4)
	// The worker goes on: it renews the locks of what runs.
	claimed := rig.One[time.Time](r, `SELECT max(locked_at) FROM events_v2`)
	testenv.Eventually(t, "the locks are renewed", func() bool {
		return rig.One[bool](r, `SELECT min(locked_at) > $1 FROM events_v2 WHERE locked_at IS NOT NULL`, claimed)
	})
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = 0`); n != 6 {
		t.Errorf("%d events were not claimed, want 6", n)
	}
	close(let)
	ran.Wait()
	if n, m := r.Outcomes.Count(machine.ExecutesToCompletion), r.Outcomes.Count(machine.Claimed); n != 4 || m != 4 {
		t.Errorf("%d of %d claimed events completed, want 4 of 4", n, m)
	}
	if n, m := r.Waiting(), r.Notifier.Ready(); n != 6 || m < 6 || m > most {
		t.Errorf("%d events and %d notifications wait, want 6 and from 6 to %d", n, m, most)
	}
}

// TestBoundCountsEveryClaim: an event that fails and is run again has had two.
func TestBoundCountsEveryClaim(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	var runs atomic.Int32
	r.Handle(func(context.Context, *eventqueue.Run) error {
		if runs.Add(1) == 1 {
			return errors.New("not yet")
		}
		return nil
	}, rig.Quick())
	r.Emit(r.Event(`1`))
	r.RunToItsBound(worker.Config{MaxEvents: 2})
	if n := r.Waiting(); runs.Load() != 2 || n != 0 {
		t.Errorf("%d runs, %d waiting; want 2 and 0", runs.Load(), n)
	}
}

// TestFairnessIsWithinTheBound fills a bounded worker with one canvas, so
// that it finds the events of another one by itself.
func TestFairnessIsWithinTheBound(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	other := eventqueue.CanvasID{0xca, 0x17, 15: 2}
	let := make(chan struct{})
	var once sync.Once
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		if run.Canvas == other {
			once.Do(func() { close(let) })
		}
		<-let
		return nil
	}, rig.Quick())
	events := r.Copies(60)
	for i := range events[55:] {
		events[55+i].Canvas = other
	}
	r.Emit(events...)
	r.RunToItsBound(worker.Config{Concurrency: 32, MaxEvents: 40})
	if n, m := r.Outcomes.Count(machine.Claimed), r.Waiting(); n != 40 || m != 20 {
		t.Errorf("%d claimed, %d waiting; want 40 and 20", n, m)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE attempts > 0 OR locked_at IS NOT NULL`); n != 0 {
		t.Errorf("%d of those that wait were touched", n)
	}
}

// TestWorkerStopsAfterItsMaximumTime gives back what runs then.
func TestWorkerStopsAfterItsMaximumTime(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}, rig.Quick())
	r.Emit(r.Copies(3)...)
	for r.Outcomes.Count(machine.Released) == 0 { // on a busy machine the time may be over before
		r.RunToItsBound(worker.Config{TTL: 200 * time.Millisecond, MaxEvents: 2, GracePeriod: -1})
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE locked_at IS NULL AND retries = 0 AND attempts <= 1`); n != 3 {
		t.Errorf("%d of 3 events are unharmed", n)
	}
	if n, m := r.Outcomes.Count(machine.Claimed), r.Outcomes.Count(machine.Released); n != m || n > 2 {
		t.Errorf("%d claimed, %d released; want the same, and at most 2", n, m)
	}
}

// TestBoundReservesNoSlots: what a bounded worker may not use stays free for later.
func TestBoundReservesNoSlots(t *testing.T) {
	t.Parallel()
	taken, free, left, err := worker.TakeBounded(t.Context(), 8, 5, 2)
	if taken != 5 || free != 8 || left != 2 || err != nil {
		t.Errorf("%d taken, then %d free and %d left, %v; want 5, 8, 2, none", taken, free, left, err)
	}
}

func TestInvalidBoundsAreRefused(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]worker.Config{
		"MaxEvents is -1: it must not be negative; 0 means no bound": {MaxEvents: -1},
		"TTL is -1s: it must not be negative; 0 means no bound":      {TTL: -time.Second},
	} {
		if err := config.Validate(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}
