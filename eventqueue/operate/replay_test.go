package operate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
)

// end has n events in the history, as if they had ended.
func (b *bench) end(n int, status string) {
	b.t.Helper()
	b.Exec(`
INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, created_at, ordering_key, attributes, parent_id)
SELECT nextval('events_id_seq'), $1, $2, $3, '_', '{"n":  ' || n || '}', $5::text::event_log_status, 0, 1, now(), now() - interval '1 hour', 'key',
    jsonb_build_object('source', 'shop', 'traceparent', 'old', 'replayed_from', '7'), 5
FROM generate_series(1, $4::int) AS n`, [16]byte(rig.Canvas), rig.Key.Module, rig.Key.Name, n, status)
}

// soon has everything that waits for its time go on now.
func (b *bench) soon() {
	b.t.Helper()
	b.Exec(`UPDATE bulk_operations SET leased_until = now(), paced_until = now() WHERE state = 'running'`)
}

// replay works until the replay has ended, without its waits.
func (b *bench) replay(op operate.Operation) operate.Operation {
	b.t.Helper()
	for op = b.work(op); op.State == operate.OperationRunning; op = b.work(op) {
		b.soon()
	}
	return op
}

const replayedOnce = `
SELECT count(*) FROM event_log l JOIN events_v2 e ON e.attributes ->> 'replayed_from' = l.id::text
WHERE e.value = l.value AND e.name = l.name AND e.canvas_id = l.canvas_id AND e.module = l.module AND e.modifier = l.modifier
  AND e.attributes ->> 'source' = 'shop' AND NOT e.attributes ? 'traceparent' AND e.parent_id IS NULL AND e.ordering_key = 'key'
  AND e.retries = 0 AND e.attempts = 0 AND e.id > (SELECT max(id) FROM event_log)`

// TestReplayEmitsEndedEventsAgain as they were, in their order, and leaves them in the history.
func TestReplayEmitsEndedEventsAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 40
	b.end(n, "COMPLETED")
	b.end(3, "FAILED")
	op := b.replay(b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 5})))
	if op.Counted != n || op.Changed != n || op.State != operate.OperationDone {
		t.Errorf("%+v, want %d replayed", op, n)
	}
	if got := rig.One[int](b.Rig, replayedOnce); got != n {
		t.Errorf("%d events are as they were, want %d", got, n)
	}
	if got := rig.One[int](b.Rig, `SELECT count(*) FROM event_log`); got != n+3 {
		t.Errorf("the history has %d events, want %d", got, n+3)
	}
	if !rig.One[bool](b.Rig, `SELECT array_agg(id ORDER BY id) = array_agg(id ORDER BY (attributes ->> 'replayed_from')::bigint) FROM events_v2`) {
		t.Error("the events are not in their order")
	}
	if got := rig.One[int](b.Rig, `SELECT sum(jsonb_array_length(target -> 'replayed_from'))::int FROM audit_log WHERE action = 'replay'`); got != n {
		t.Errorf("%d originals are in the audit log, want %d", got, n)
	}
	failed := b.replay(b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: operate.EventFilter{Name: rig.Key.Name, State: operate.StateFailed}})))
	if failed.Changed != 3 {
		t.Errorf("%+v, want 3 failed ones replayed", failed)
	}
}

// TestReplayKeepsItsRate: no more events are due in any time than the rate allows, and pieces do not overlap.
func TestReplayKeepsItsRate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.end(45, "COMPLETED")
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 4}))
	if op = b.work(op); op.State != operate.OperationRunning || op.Changed != 20 {
		t.Fatalf("%+v, want a piece of 20", op)
	}
	const faster = `SELECT count(*) FROM (SELECT delay_until - lag(delay_until) OVER (ORDER BY id) AS gap FROM events_v2) AS gaps WHERE gap < interval '250 ms'`
	for range 2 { // as if it were later, but for what the pieces have reserved
		b.Exec(`UPDATE bulk_operations SET leased_until = now()`)
		op = b.work(op)
	}
	if got := rig.One[int](b.Rig, faster); got != 0 {
		t.Errorf("%d events follow too fast", got)
	}
	if op.Changed != 45 {
		t.Errorf("%+v, want all", op)
	}
}

// TestKilledReplayEmitsNothingTwice has programs die, or lose their answers, in any place of a replay: each event is replayed once.
func TestKilledReplayEmitsNothingTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 60
	b.end(n, "COMPLETED")
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 4}))
	// The progress cannot be written: nothing is emitted.
	b.Exec(`ALTER TABLE bulk_operations ADD CONSTRAINT no_progress CHECK (after_id = 0)`)
	if _, err := b.operations.Work(b.ctx); err == nil {
		t.Fatal("no error")
	}
	if got := rig.One[int](b.Rig, `SELECT count(*) FROM events_v2`); got != 0 {
		t.Errorf("%d events were emitted without progress", got)
	}
	b.Exec(`ALTER TABLE bulk_operations DROP CONSTRAINT no_progress`)
	b.soon()
	b.work(op)
	// A program that has died holds the lease, and another one goes on when it has ended.
	b.Exec(`UPDATE bulk_operations SET lease = gen_random_uuid(), leased_until = now() + interval '1 hour'`)
	if got := b.work(op); got.Changed != 10 {
		t.Fatalf("%+v, want 10", got)
	}
	// One that has lost its lease within a piece emits nothing.
	b.Exec(`
CREATE FUNCTION loses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE bulk_operations SET lease = gen_random_uuid(); RETURN NULL;
END $$;
CREATE TRIGGER loses AFTER INSERT ON events_v2 FOR EACH STATEMENT EXECUTE FUNCTION loses()`)
	b.soon()
	b.work(op)
	b.Exec(`DROP TRIGGER loses ON events_v2`)
	if got := rig.One[int](b.Rig, `SELECT count(*) FROM events_v2`); got != 10 {
		t.Errorf("%d events were emitted, want 10", got)
	}
	b.soon()
	if got := b.replay(op); got.State != operate.OperationDone || got.Changed != n {
		t.Errorf("%+v, want %d", got, n)
	}
	if got := rig.One[int](b.Rig, replayedOnce); got != n || rig.One[int](b.Rig, `SELECT count(*) FROM events_v2`) != n {
		t.Errorf("%d events were replayed as they were, want each of %d once", got, n)
	}
}

// TestRefusedRowStopsNoReplay (I15).
func TestRefusedRowStopsNoReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.end(10, "COMPLETED")
	b.Exec(`ALTER TABLE events_v2 ADD CONSTRAINT one_of_each_piece CHECK (value NOT IN ('{"n":  4}', '{"n":  9}'))`)
	op := b.replay(b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 1}))) // in pieces of five
	if op.State != operate.OperationDone || op.Changed != 8 || op.Refused != 2 {
		t.Errorf("%+v, want 8 replayed and two refused", op)
	}
}

// TestStoppedReplayResumes: what is stopped goes on where it ended; what was never confirmed does not begin.
func TestStoppedReplayResumes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.end(30, "COMPLETED")
	op := b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 4})
	resume := func() operate.Operation {
		t.Helper()
		op, err := b.operations.Resume(b.ctx, ada, op.ID)
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	if got := resume(); got.State != operate.OperationCounted {
		t.Errorf("%+v: it was not confirmed", got)
	}
	if _, err := b.operations.Resume(b.ctx, ada, uuid.New()); !errors.Is(err, operate.ErrUnknownOperation) {
		t.Errorf("an unknown id: %v", err)
	}
	b.work(b.confirm(op))
	if _, err := b.operations.Stop(b.ctx, ada, op.ID); err != nil {
		t.Fatal(err)
	}
	b.Exec(`UPDATE bulk_operations SET leased_until = now()`)
	if got := b.work(op); got.State != operate.OperationStopped || got.Changed != 20 {
		t.Fatalf("%+v, want it stopped after 20", got)
	}
	if got := resume(); got.State != operate.OperationRunning || !got.EndedAt.IsZero() {
		t.Errorf("%+v, want it running", got)
	}
	if got := b.replay(op); got.State != operate.OperationDone || got.Changed != 30 {
		t.Errorf("%+v, want 30", got)
	}
	if got := resume(); got.State != operate.OperationDone {
		t.Errorf("%+v: it was done", got)
	}
	if got := rig.One[int](b.Rig, replayedOnce); got != 30 {
		t.Errorf("%d events, want 30", got)
	}
}

// TestAwaitReturnsWhenTheOperationEnds works on one operation, and leaves others alone.
func TestAwaitReturnsWhenTheOperationEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.end(30, "COMPLETED")
	other := b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 1}))
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbReplay, Filter: filter(), Rate: 20}))
	seen := 0
	op, err := b.operations.Await(b.ctx, op.ID, func(op operate.Operation) { seen = op.Changed }, nil)
	if err != nil || op.State != operate.OperationDone || op.Changed != 30 {
		t.Errorf("%+v, %v, want 30", op, err)
	}
	if seen != 30 {
		t.Errorf("the progress says %d, want 30", seen)
	}
	if got := b.get(other); got.Changed != 0 || got.State != operate.OperationRunning {
		t.Errorf("the other one is %+v", got)
	}
}

// TestReplayWithoutHistoryNamesTheSetting: the error says what to set, and for which canvas nothing is there.
func TestReplayWithoutHistoryNamesTheSetting(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.end(3, "FAILED")
	var invalid *operate.InvalidError
	if _, err := b.operations.Count(b.ctx, ada, adasKey, operate.Change{Verb: operate.VerbReplay, Filter: filter()}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "RETAIN_HISTORY=true") {
		t.Errorf("%v, want that it says what to set", err)
	}
	b.end(1, "COMPLETED")
	if op := b.count(operate.Change{Verb: operate.VerbReplay, Filter: operate.EventFilter{Canvas: &rig.Canvas, Name: "another"}}); op.Counted != 0 {
		t.Errorf("%+v, want none", op)
	}
	for text, change := range map[string]operate.Change{
		"the filter is empty":  {Verb: operate.VerbReplay, Filter: operate.EventFilter{State: operate.StateCompleted}},
		"it must be from":      {Verb: operate.VerbReplay, Filter: filter(), Rate: 1e9},
		"only a replay has":    {Verb: operate.VerbRetry, Filter: filter(), Rate: 1},
		"events that have end": {Verb: operate.VerbReplay, Filter: operate.EventFilter{Name: "x", State: operate.StateWaiting}},
		"leave it out":         {Verb: operate.VerbReplay, Filter: filter(), Edit: operate.Edit{Delay: new(time.Hour)}},
	} {
		if _, err := b.operations.Size(b.ctx, change); !errors.As(err, &invalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", change, err, text)
		}
	}
}

// TestReplayedChildrenAreNotEmittedTwice: they inherit the attributes of their parent, but not what it repeats.
func TestReplayedChildrenAreNotEmittedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	parent := &eventqueue.Event{ID: 9, Attributes: map[string]string{"replayed_from": "7", "source": "shop"}}
	_, err := b.Queue.Emit(eventqueue.WithParent(b.ctx, parent), eventqueue.NewEvent{Canvas: rig.Canvas, Module: "A", Name: "b", Modifier: "_", Value: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	if got := rig.One[string](b.Rig, `SELECT attributes::text FROM events_v2`); got != `{"source": "shop"}` {
		t.Errorf("the child has %s", got)
	}
	if parent.Attributes["replayed_from"] != "7" {
		t.Error("the parent has lost it")
	}
}
