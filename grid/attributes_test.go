package grid_test

import (
	"context"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/grid"
	"eventsv2/test/testenv"
)

// TestActionsEmitChildren: what an action emits with its context is a child of the grid's event, and
// has its attributes.
func TestActionsEmitChildren(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	emitted := make(chan eventqueue.EventID, 1)
	r.on("a", func(ctx context.Context, _ call) (string, error) {
		if user := eventqueue.ParentOf(ctx).Attributes["user"]; user != "ada" {
			t.Errorf("the action sees the user %q", user)
		}
		id, err := r.queue.Emit(ctx, eventqueue.NewEvent{Canvas: canvas, Module: "WORKER", Name: "nobody", Modifier: "_", Value: []byte(`1`)})
		emitted <- id
		return "", err
	})
	r.start(r.definition("a"), grid.Config{}, worker.Config{})
	id := r.emitIn(eventqueue.WithParent(testenv.Context(t), &eventqueue.Event{ID: 1000, Attributes: map[string]string{"user": "ada"}}), "go")
	r.await(machine.ExecutesToCompletion)
	var child bool
	if err := r.pool.QueryRow(testenv.Context(t), `SELECT parent_id = $2 AND attributes = '{"user": "ada"}' FROM events_v2 WHERE id = $1`, <-emitted, id).Scan(&child); err != nil || !child {
		t.Errorf("the event is a child: %t, %v", child, err)
	}
}
