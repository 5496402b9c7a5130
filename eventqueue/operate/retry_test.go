package operate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// fail has events end as FAILED.
func fail(r *rig.Rig, ids ...eventqueue.EventID) {
	r.T.Helper()
	r.Handle(func(context.Context, *eventqueue.Run) error { return eventqueue.Permanent(errors.New("no luck")) }, rig.Quick())
	r.RunToItsBound(worker.Config{MaxEvents: len(ids)})
	if n := r.Logged("FAILED"); n != len(ids) {
		r.T.Fatalf("%d events have failed, want %d", n, len(ids))
	}
}

func TestRetryMovesAndNotifies(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	id := r.Emit(r.Event(`1`))[0]
	fail(r, id)
	ctx := testenv.Context(t)
	for _, want := range []operate.ChangeResult{operate.RetryMoved, operate.RetryQueued} { // I14
		got, err := r.Changer().Retry(ctx, id, id+1000)
		if err != nil || !slices.Equal(got, []operate.Changed{{ID: id, Result: want}, {ID: id + 1000, Result: operate.ChangeUnknown}}) {
			t.Errorf("the results are %+v, %v; want %s", got, err, want)
		}
		if got, want := r.Row(id), "free due retries 0 attempts 1 notified"; got != want {
			t.Errorf("the event is %s, want %s", got, want)
		}
	}
}

// TestRetryByFilterLeavesOtherHandlersAlone: events of others stay where they are (I16).
func TestRetryByFilterLeavesOtherHandlersAlone(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ids := r.Emit(r.Copies(3)...)
	fail(r, ids...)
	r.Exec(`UPDATE event_log SET name = 'other' WHERE id = $1`, ids[1])
	event := r.Event(`1`)
	filter := operate.EventFilter{Canvas: &event.Canvas, Module: event.Module, Name: event.Name}
	for _, want := range []int{2, 0} { // I14
		if moved, _, err := many(testenv.Context(t), r, operate.Change{Verb: operate.VerbRetry, Filter: filter}); moved.Changed != want || err != nil {
			t.Errorf("%+v, want %d; %v", moved, want, err)
		}
	}
	if moved, logged := r.Waiting(), r.Logged("FAILED"); moved != 2 || logged != 1 {
		t.Errorf("%d events are back and %d are not, want 2 and 1", moved, logged)
	}
}

func TestRetryBoundsTheNumberOfIDs(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for _, ids := range [][]eventqueue.EventID{nil, make([]eventqueue.EventID, operate.MaxRetryEvents+1)} {
		if _, err := r.Changer().Retry(testenv.Context(t), ids...); err == nil {
			t.Errorf("%d ids are taken", len(ids))
		}
	}
	if _, err := operate.NewChanger(nil, r.Queue); err == nil {
		t.Error("no store is taken")
	}
}
