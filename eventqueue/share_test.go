package eventqueue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/test/testenv"
)

// copies are n events of the handler of most tests.
func (r *rig) copies(n int) []eventqueue.NewEvent {
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = r.event(`1`)
	}
	return events
}

// quietCanvas is a tenant with little to do.
var quietCanvas = eventqueue.CanvasID{0xf0, 15: 2}

// TestABusyCanvasDelaysNobody fills a worker with slow events of one canvas and
// emits single events of others: they run while none of the slow ones has ended
// and a hundred times as many wait in front of them (I15).
func TestABusyCanvasDelaysNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	let := make(chan struct{})
	quiet := make(chan eventqueue.CanvasID, 10)
	r.handle(func(ctx context.Context, run *eventqueue.Run) error {
		if run.Canvas != canvas {
			quiet <- run.Canvas
			return nil
		}
		select {
		case <-let:
		case <-ctx.Done():
		}
		return nil
	}, quick())
	const backlog = 3000
	r.emit(r.copies(backlog)...)
	var others []eventqueue.NewEvent
	for i := range byte(5) {
		e := r.event(`1`)
		e.Canvas = quietCanvas
		e.Canvas[14] = i
		others = append(others, e)
	}
	r.emit(others...)
	r.start(eventqueue.WorkerConfig{Concurrency: 32})
	for range others {
		select {
		case <-quiet:
		case <-testenv.Context(t).Done():
			t.Fatal("the events of other canvases wait behind the busy one")
		}
	}
	r.outcomes.await(t, machine.ExecutesToCompletion, len(others))
	if n := r.waiting(); n != backlog {
		t.Errorf("%d rows are left, want the %d of the busy canvas", n, backlog)
	}
	close(let)
	r.outcomes.await(t, machine.ExecutesToCompletion, backlog+len(others))
	// Their notifications came later and were dropped.
	r.outcomes.await(t, machine.EventMissing, len(others))
	testenv.Eventually(t, "every notification has been answered", func() bool { return r.notifier.Ready() == 0 })
}

// TestAFewSlotsAreSharedToo has workers that keep no slots for others: another
// canvas gets one of the next few that come free.
func TestAFewSlotsAreSharedToo(t *testing.T) {
	t.Parallel()
	for _, concurrency := range []int{1, 2, 15} {
		t.Run(fmt.Sprint(concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const backlog = 2000
				if n := busyRunsBeforeQuiet(t, concurrency, backlog); n > backlog/4 {
					t.Errorf("%d events of the busy canvas ran before the other's", n)
				}
			})
		})
	}
}

// busyRunsBeforeQuiet runs a backlog of events of a second each, with the event
// of another canvas behind them all, until that has run.
func busyRunsBeforeQuiet(t *testing.T, concurrency, backlog int) int {
	store := memstore.New(memstore.Config{})
	notifier := memnotify.New(memnotify.Config{})
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var before atomic.Int32
	handlers := eventqueue.NewHandlers()
	handler := eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error {
		if run.Canvas == quietCanvas {
			stop()
			return nil
		}
		before.Add(1)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return nil
	})
	if err := handlers.Register(key, handler, quick()); err != nil {
		t.Fatal(err)
	}
	events := make([]eventqueue.NewEvent, backlog+1)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: []byte(`1`)}
	}
	events[backlog].Canvas = quietCanvas
	if _, err := queue.EmitMany(ctx, events); err != nil {
		t.Fatal(err)
	}
	worker, err := eventqueue.NewWorker(queue, store, notifier, handlers, eventqueue.WorkerConfig{Concurrency: concurrency})
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return int(before.Load())
}
