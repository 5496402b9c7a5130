package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// quietCanvas is a tenant with little to do.
var quietCanvas = eventqueue.CanvasID{0xf0, 15: 2}

// TestBusyCanvasDelaysNoOther fills a worker with slow events of one canvas and
// emits single events of others: they run while none of the slow ones has ended
// and a hundred times as many wait in front of them (I15).
func TestBusyCanvasDelaysNoOther(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	let := make(chan struct{})
	quiet := make(chan eventqueue.CanvasID, 10)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		if run.Canvas != rig.Canvas {
			quiet <- run.Canvas
			return nil
		}
		select {
		case <-let:
		case <-ctx.Done():
		}
		return nil
	}, rig.Quick())
	const backlog = 1000
	r.Emit(r.Copies(backlog)...)
	var others []eventqueue.NewEvent
	for i := range byte(5) {
		e := r.Event(`1`)
		e.Canvas = quietCanvas
		e.Canvas[14] = i
		others = append(others, e)
	}
	r.Emit(others...)
	r.Start(worker.Config{Concurrency: 32})
	for range others {
		select {
		case <-quiet:
		case <-testenv.Context(t).Done():
			t.Fatal("the events of other canvases wait behind the busy one")
		}
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(others))
	if n := r.Waiting(); n != backlog {
		t.Errorf("%d rows are left, want the %d of the busy canvas", n, backlog)
	}
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, backlog+len(others))
	// Their notifications came later and were dropped.
	r.Outcomes.Await(t, machine.EventMissing, len(others))
	testenv.Eventually(t, "every notification has been answered", func() bool { return r.Notifier.Ready() == 0 })
}

// TestFewSlotsAreSharedToo has workers that keep no slots for others: another
// canvas gets one of the next few that come free.
func TestFewSlotsAreSharedToo(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 2, 15} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			rig.Virtual(t, func(t *testing.T, r *rig.Rig) {
				const backlog = 2000
				if n := busyRunsBeforeQuiet(r, concurrency, backlog); n > backlog/4 {
					t.Errorf("%d events of the busy canvas ran before the other's", n)
				}
			})
		})
	}
}

// busyRunsBeforeQuiet runs a backlog of events of a second each, with the event
// of another canvas behind them all, until that has run.
func busyRunsBeforeQuiet(r *rig.Rig, concurrency, backlog int) int {
	var ran atomic.Int32
	before := make(chan int32, 1)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		if run.Canvas == quietCanvas {
			before <- ran.Load()
			return nil
		}
		ran.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return nil
	}, rig.Quick())
	events := r.Copies(backlog + 1)
	events[backlog].Canvas = quietCanvas
	r.Emit(events...)
	r.Start(worker.Config{Concurrency: concurrency})
	return int(<-before)
}
