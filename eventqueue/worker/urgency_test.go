package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/priority"
	"eventsv2/test/rig"
)

// withPriority returns events of a priority.
func withPriority(r *rig.Rig, p string, n int) []eventqueue.NewEvent {
	events := slices.Clone(r.Copies(n))
	for i := range events {
		events[i].Priority = p
	}
	return events
}

// busyWith runs events of the queue that take a while each, and reports the priorities of those that begin.
func busyWith(r *rig.Rig, takes time.Duration) (begun <-chan string) {
	began := make(chan string, 10_000)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		began <- run.Priority
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		return nil
	}, rig.Quick())
	return began
}

// soon is how long an event of high priority waits at most behind a backlog.
const soon = time.Second

// TestHighPriorityStartsSoonBehindABacklog, whatever the size of the worker, and whether its events are
// long or short. The others go on.
func TestHighPriorityStartsSoonBehindABacklog(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 10, 16, 100} {
		for _, takes := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond} {
			t.Run(fmt.Sprint(concurrency, takes), func(t *testing.T) {
				t.Parallel()
				rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
					backlog := max(concurrency, 10) * int(5*time.Second/takes)
					begun := busyWith(r, takes)
					r.Emit(r.Copies(backlog)...)
					defer r.Start(worker.Config{Concurrency: concurrency})()
					rig.Pass(2 * time.Second)
					before := len(begun)
					r.Emit(withPriority(r, priority.High, 3)...)
					rig.Pass(soon + 3*3*takes) // a worker of one slot gives them every third run
					high := 0
					for len(begun) > 0 {
						if <-begun == priority.High {
							high++
						}
					}
					if high != 3 {
						t.Errorf("of 3 events of high priority %d have begun", high)
					}
					if before == 0 || r.Waiting() == 0 {
						t.Errorf("%d events ran before, and %d wait: there is no backlog", before, r.Waiting())
					}
				})
			})
		}
	}
}

// TestLowPriorityRunsBesideABacklogWithoutANotification: a few of them are always among the others.
func TestLowPriorityRunsBesideABacklogWithoutANotification(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		begun := busyWith(r, 100*time.Millisecond)
		r.Emit(r.Copies(3000)...)
		r.Emit(withPriority(r, priority.Low, 100)...) // which nobody notifies
		defer r.Start(worker.Config{Concurrency: 16})()
		rig.Pass(15 * time.Second)
		low := 0
		for len(begun) > 0 {
			if <-begun == priority.Low {
				low++
			}
		}
		if low < 3 || low > 20 || r.Waiting() < 500 {
			t.Errorf("%d events of low priority have begun beside %d others that wait", low, r.Waiting())
		}
	})
}

// TestWorkerThatKeepsUpAsksForNoPriority (I12).
func TestWorkerThatKeepsUpAsksForNoPriority(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		begun := busyWith(r, 10*time.Millisecond)
		var asked atomic.Int32
		defer r.StartOn(countingLooks(r, &asked), worker.Config{Concurrency: 16})()
		for range 20 {
			r.Emit(append(withPriority(r, priority.High, 1), r.Copies(3)...)...)
			rig.Pass(time.Second)
		}
		if len(begun) != 80 || asked.Load() != 0 {
			t.Errorf("%d of 80 events have begun, and the worker looked for others %d times", len(begun), asked.Load())
		}
	})
}

// TestOrderedEventsThatWaitForEachOtherDelayNobody: a worker that has slots for them looks for no priority (I12).
func TestOrderedEventsThatWaitForEachOtherDelayNobody(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		begun := busyWith(r, 10*time.Millisecond)
		var asked atomic.Int32
		defer r.StartOn(countingLooks(r, &asked), worker.Config{Concurrency: 100})()
		events := r.Copies(200)
		for i := range events {
			events[i].OrderingKey = "order"
		}
		r.Emit(events...)
		rig.Pass(10 * time.Second)
		if len(begun) != len(events) || asked.Load() != 0 {
			t.Errorf("%d events have begun, and the worker looked for others %d times", len(begun), asked.Load())
		}
	})
}

// countingLooks counts how often a worker asks for runnable events.
func countingLooks(r *rig.Rig, asked *atomic.Int32) worker.Store {
	return rig.Faulty(r.Store, rig.Faults{Before: func(_ context.Context, op rig.Op) error {
		if op == rig.OpRunnable {
			asked.Add(1)
		}
		return nil
	}})
}

// TestHighPriorityThatCannotRunHoldsUpNoOther (I15): that of a handler whose breaker is open, and that of canvases which
// have much of it.
func TestHighPriorityThatCannotRunHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{4, 16} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				const takes = 200 * time.Millisecond
				begun := busyWith(r, takes)
				down, policy, retries := rig.Key, rig.Quick(), 100
				down.Name, policy.BreakerAfter, policy.MaxRetries = "down", 1, &retries
				if err := r.Handlers.Register(down, eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error {
					return eventqueue.Unavailable(errors.New("it is down"), 0)
				}), policy); err != nil {
					t.Fatal(err)
				}
				broken, many, last := withPriority(r, priority.High, 100), withPriority(r, priority.High, 100), withPriority(r, priority.High, 1)
				for i := range broken {
					broken[i].Name, broken[i].Canvas = down.Name, eventqueue.CanvasID{1}
					many[i].Canvas = eventqueue.CanvasID{2, byte(i % 4)}
				}
				last[0].Canvas, last[0].Value = eventqueue.CanvasID{0xff}, []byte(`"last"`)
				r.Emit(append(append(broken, many...), r.Copies(200*concurrency)...)...)
				defer r.Start(worker.Config{Concurrency: concurrency})()
				rig.Pass(2 * time.Second)
				id := r.Emit(last...)[0]
				rig.Pass(5 * soon)
				if rig.One[bool](r, `SELECT EXISTS (SELECT FROM events_v2 WHERE id = $1 AND attempts = 0)`, int64(id)) {
					t.Errorf("event %d of high priority has not begun, after %d others", id, len(begun))
				}
			})
		})
	}
}

// TestLowPriorityIsWorkedOffAlone at the speed of the workers, and holds up nobody who comes.
func TestLowPriorityIsWorkedOffAlone(t *testing.T) {
	t.Parallel()
	rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
		const takes, concurrency, backlog = 100 * time.Millisecond, 10, 2000
		begun := busyWith(r, takes)
		relay := r.Relay(maintenance.RelayConfig{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		defer r.Start(worker.Config{Concurrency: concurrency})()
		rig.Pass(time.Second)
		r.Emit(withPriority(r, priority.Low, backlog)...)
		rig.Pass(5 * time.Second)
		if n := len(begun); n < 5*concurrency*int(time.Second/takes)*3/4 {
			t.Errorf("%d events of low priority have begun in 5 s", n)
		}
		for len(begun) > 0 {
			<-begun
		}
		r.Emit(r.Copies(1)...)
		rig.Pass(soon)
		waited := 0
		for len(begun) > 0 && <-begun != "" {
			waited++
		}
		if most := concurrency * int(soon/takes) * 3 / 4; waited > most {
			t.Errorf("%d events of low priority began before a normal one, want %d at most", waited, most)
		}
		rig.Pass(20 * time.Second)
		if n := r.Waiting(); n != 0 {
			t.Errorf("%d events wait after 25 s", n)
		}
	})
}
