package worker_test

import (
	"context"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestRefusedRowsOfGroupsStopNoWork (I1, I3, I15): of events under a concurrency limit and of
// one key, those that the database refuses to write cost no other a run, a second run or a
// completion, and the log names them.
func TestRefusedRowsOfGroupsStopNoWork(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	if _, err := r.Store.SetConcurrencyLimit(testenv.Context(t), operate.ConcurrencyLimit{Canvas: rig.Canvas, Max: 2}); err != nil {
		t.Fatal(err)
	}
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	var events []eventqueue.NewEvent
	for i := range 20 {
		e := r.Event(`"good"`)
		if i%5 == 2 {
			e = r.Event(`"bad"`)
		}
		if i == 18 || i == 19 { // at the end of a key
			e = r.Event([]string{`"good"`, `"bad"`}[i-18])
			e.OrderingKey = "key"
		}
		events = append(events, e)
	}
	const bad = 5
	ids := r.Emit(events...)
	r.Exec(`ALTER TABLE events_v2 ADD CONSTRAINT good CHECK (value NOT LIKE '%bad%') NOT VALID`)
	core, logs := observer.New(zap.ErrorLevel)
	r.Start(worker.Config{Logger: zap.New(core)})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(ids)-bad)
	if n := r.Outcomes.Count(machine.Claimed); n != len(ids)-bad {
		t.Errorf("%d runs of %d events that can be written", n, len(ids)-bad)
	}
	if n := r.Waiting(); n != bad {
		t.Errorf("%d events are left, want %d", n, bad)
	}
	named := map[any]bool{}
	for _, line := range logs.All() {
		if id, names := line.ContextMap()["event_id"]; names {
			named[id] = true
		}
	}
	if len(named) == 0 || len(named) > bad {
		t.Errorf("the log names %v", named)
	}
}
