package eventqueue_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

// TestAStopHandsNothingOver: a worker that stops begins no more events of lines,
// however fast they end, and what it leaves is heard by another one, without a
// relay.
func TestAStopHandsNothingOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const keys, each = 40, 50
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	var events []eventqueue.NewEvent
	for i := range keys * each {
		events = append(events, r.inOrder(strconv.Itoa(i%keys), `1`))
	}
	r.emit(events...)
	stop := r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, keys)
	stop()
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n == 0 {
		t.Error("a worker that was to stop has run all events of the lines")
	}
	r.start(eventqueue.WorkerConfig{Concurrency: 10})
	r.outcomes.await(t, machine.ExecutesToCompletion, keys*each)
}

// TestABoundedWorkerGivesTurnsOn: what it may not run itself is heard by others.
func TestABoundedWorkerGivesTurnsOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	var events []eventqueue.NewEvent
	for i := range 9 {
		events = append(events, r.inOrder(strconv.Itoa(i%2), `1`))
	}
	r.emit(events...)
	for range 3 {
		worker, err := eventqueue.NewWorker(r.queue, r.store, r.notifier, r.handlers, eventqueue.WorkerConfig{MaxEvents: 3, Observe: r.outcomes.add})
		if err != nil {
			t.Fatal(err)
		}
		if err := worker.Run(testenv.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestAnUnknownHandlerKeepsItsPlace: the worker that does not have it does not
// run what is behind it, and another one finds both.
func TestAnUnknownHandlerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	line := &ran{}
	handler := eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		line.begin(string(run.Value))
		line.end()
		return nil
	})
	first := r.inOrder("a", `1`)
	first.Name = "unknown"
	r.emit(first, r.inOrder("a", `2`))
	r.handle(handler, quick())
	stop := r.start(eventqueue.WorkerConfig{UnknownDelay: 100 * time.Millisecond})
	r.outcomes.await(t, machine.HandlerUnknown, 1)
	stop()
	if err := r.handlers.Register(first.Handler(), handler, quick()); err != nil {
		t.Fatal(err)
	}
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
	if want := []string{"1", "2"}; !slices.Equal(line.values, want) {
		t.Errorf("ran %v, want %v", line.values, want)
	}
}
