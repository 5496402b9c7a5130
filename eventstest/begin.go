package eventstest

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
)

// Begin emits an event and begins its run, as a worker would, for a test that calls the handler by itself. event is an
// [eventqueue.NewEvent], or a typed event that is known to q.Service.
//
//	ctx, run := q.Begin(OrderPlaced{Order: 1})
//	err := charge(ctx, OrderPlaced{Order: 1}, run)
//
// The run can complete its event, with CompleteTx or CompleteIn, and then has: see RequireState. If it does not, the event
// stays running, since what the handler returns is seen by the test only. In ctx, emits are children of the event, as
// in a worker. ctx ends with the test, and has no time-out. No limit is asked.
func (q *Queue) Begin(event any) (context.Context, *eventqueue.Run) {
	q.t.Helper()
	e := q.newEvent("Begin", event)
	if e.Name == "" {
		q.t.Fatal("eventstest: Begin: the event has no Name: a worker finds its handler by that")
	}
	ctx := q.t.Context()
	id, err := q.Service.Emit(ctx, e)
	q.must("emit an event to begin its run", err)
	shown, err := q.reader.Show(ctx, id)
	q.must("begin a run", err)
	if shown.Queued == nil {
		q.t.Fatalf("eventstest: Begin: its unique key %q is that of event %s, which has ended", e.UniqueKey, id)
	}
	config := worker.Config{RetainHistory: true}
	if q.config.Codec != nil {
		config.SealResult = q.config.Codec.SealResult
	}
	run, err := worker.Begin(ctx, q.Service.Queue, q.Service.Store(), id, shown.Queued.Handler(), config)
	q.must("begin a run", err)
	q.openValue(&run.Event)
	return eventqueue.WithParent(ctx, &run.Event), run
}

// newEvent returns an event of the caller's as one that can be emitted. A typed event has no canvas yet.
func (q *Queue) newEvent(method string, event any) eventqueue.NewEvent {
	q.t.Helper()
	switch e := event.(type) {
	case eventqueue.NewEvent:
		return e
	case typed.Event:
		encoded, err := q.Service.Bus().NewEvent(eventqueue.CanvasID{}, e)
		q.must(method, err)
		return encoded
	default:
		q.t.Fatalf("eventstest: %s: %T is neither an eventqueue.NewEvent nor a typed event, which has the methods EventType and EventAction", method, event)
		return eventqueue.NewEvent{}
	}
}
