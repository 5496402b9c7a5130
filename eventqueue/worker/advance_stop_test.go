package worker_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestStoppingWorkerAdvancesNoGroupToItself: a worker that stops begins no more events of lines,
// however fast they end, and what it leaves is heard by another one, without a
// relay.
func TestStoppingWorkerAdvancesNoGroupToItself(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	const keys, each = 40, 15
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	var events []eventqueue.NewEvent
	for i := range keys * each {
		events = append(events, r.InOrder(strconv.Itoa(i%keys), `1`))
	}
	r.Emit(events...)
	stop := r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, keys)
	stop()
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2`); n == 0 {
		t.Error("a worker that was to stop has run all events of the lines")
	}
	r.Start(worker.Config{Concurrency: 10})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, keys*each)
}

// TestBoundedWorkerAdvancesGroups: it publishes notifications for the events that it may
// not run itself.
func TestBoundedWorkerAdvancesGroups(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	var events []eventqueue.NewEvent
	for i := range 9 {
		events = append(events, r.InOrder(strconv.Itoa(i%2), `1`))
	}
	r.Emit(events...)
	for range 3 {
		w, err := worker.New(r.Queue, r.Store, r.Notifier, r.Handlers, worker.Config{MaxEvents: 3, Observe: r.Outcomes.Add})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(testenv.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events are left", n)
	}
}

// TestEventOfUnknownHandlerKeepsItsPlace: the worker that does not have it does not
// run what is behind it, and another one finds both.
func TestEventOfUnknownHandlerKeepsItsPlace(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	group := &ran{}
	handler := eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		group.begin(string(run.Value))
		group.end()
		return nil
	})
	first := r.InOrder("a", `1`)
	first.Name = "unknown"
	r.Emit(first, r.InOrder("a", `2`))
	r.Handle(handler, rig.Quick())
	stop := r.Start(worker.Config{UnknownDelay: 100 * time.Millisecond})
	r.Outcomes.Await(t, machine.HandlerUnknown, 1)
	stop()
	if err := r.Handlers.Register(first.Handler(), handler, rig.Quick()); err != nil {
		t.Fatal(err)
	}
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	if want := []string{"1", "2"}; !slices.Equal(group.values, want) {
		t.Errorf("ran %v, want %v", group.values, want)
	}
}
