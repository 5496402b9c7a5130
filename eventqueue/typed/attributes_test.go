package typed_test

import (
	"context"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestAttributesPassThroughTheChain: from the typed event to its handlers' events, which are its
// children, and to what those emit.
func TestAttributesPassThroughTheChain(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	runs := make(chan eventqueue.Event, 3)
	r.ok(typed.On(r.bus, "first", func(_ context.Context, _ recordCreated, run *eventqueue.Run) error {
		runs <- run.Event
		return nil
	}, typed.Synchronous()))
	r.ok(typed.On(r.bus, "files", func(ctx context.Context, _ recordCreated, run *eventqueue.Run) error {
		runs <- run.Event
		_, err := r.bus.Emit(ctx, rig.Canvas, fileAdded{Name: "a"})
		return err
	}))
	r.ok(typed.On(r.bus, "last", func(_ context.Context, _ fileAdded, run *eventqueue.Run) error {
		runs <- run.Event
		return nil
	}, typed.Synchronous()))
	r.ok(r.bus.Register(r.Handlers))
	event, err := r.bus.NewEvent(rig.Canvas, recordCreated{Title: "x"})
	r.ok(err)
	event.Attributes = map[string]string{"user": "ada"}
	id, err := r.Queue.Emit(testenv.Context(t), event)
	r.ok(err)
	r.Start(worker.Config{})
	parent := eventqueue.EventID(0)
	for i := range 3 {
		got := <-runs
		if got.ParentID != parent || got.Attributes["user"] != "ada" || len(got.Attributes) != 1 {
			t.Errorf("handler %d got %+v, want a child of %s", i, got, parent)
		}
		if parent = got.ID; i == 0 {
			parent = id
		}
	}
}
