package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// slotsInUse is how the one worker of a queue is occupied, as operators are shown; the zero value before it is registered.
func slotsInUse(r *rig.Rig) inspect.WorkerSlots {
	r.T.Helper()
	workers, err := inspect.New(r.Pool).Workers(testenv.Context(r.T))
	if err != nil || len(workers) > 1 {
		r.T.Fatalf("%d workers, and %v", len(workers), err)
	}
	if len(workers) == 0 {
		return inspect.WorkerSlots{}
	}
	return workers[0].Slots
}

func TestHungHandlersShowInWorkerListAndExplain(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	let := make(chan struct{})
	policy := rig.Quick()
	policy.Timeout = time.Millisecond
	r.Handle(func(context.Context, *eventqueue.Run) error { <-let; return nil }, policy)
	ids := r.Emit(r.Copies(3)...)
	stop := r.Start(worker.Config{Concurrency: 2, MaxHung: -1, Heartbeat: 10 * time.Millisecond, LockTimeout: time.Hour})
	testenv.Eventually(t, "all slots are shown as held by handlers that hang", func() bool {
		s := slotsInUse(r)
		return s.Of == 2 && s.Busy == 2 && s.Hung == 2 && s.OldestSince != nil && s.Full()
	})
	waiting := rig.One[eventqueue.EventID](r, `SELECT id FROM events_v2 WHERE id = ANY ($1) AND locked_at IS NULL`, ids)
	explained, err := inspect.New(r.Pool).Explain(testenv.Context(t), waiting)
	if err != nil {
		t.Fatal(err)
	}
	if why := explained.Because().Why; !strings.Contains(why, "all 2 slots of the worker are busy, the oldest since 2") ||
		!strings.Contains(why, "2 handlers have not returned though their time is over") {
		t.Errorf("the event that waits is explained by: %s", why)
	}
	close(let)
	testenv.Eventually(t, "all events have run, and all slots are shown as free", func() bool {
		s := slotsInUse(r)
		return s.Of == 2 && s.Busy == 0 && s.Hung == 0 && s.OldestSince == nil && !s.Full() && rig.One[int](r, `SELECT count(*) FROM events_v2`) == 0
	})
	stop()
	if s := slotsInUse(r); s.Busy != 0 || s.OldestSince != nil {
		t.Errorf("the worker that has stopped is shown with the slots %+v", s)
	}
}
