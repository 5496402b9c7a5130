package operate_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

var ada = audit.Actor{Name: "token:ada", Source: "10.0.0.7", Via: "api"}

const adasKey = "token:1"

// bench has operations on a database of its own.
type bench struct {
	*rig.Rig
	t          *testing.T
	ctx        context.Context
	operations *operate.Operations
}

func newBench(t *testing.T) *bench {
	t.Helper()
	r := rig.New(t)
	return &bench{r, t, testenv.Context(t), operations(r)}
}

func operations(r *rig.Rig) *operate.Operations {
	r.T.Helper()
	operations, err := operate.NewOperations(r.Store, r.Queue, testenv.Logger(r.T))
	if err != nil {
		r.T.Fatal(err)
	}
	return operations
}

// size is how many events a change is about.
func size(r *rig.Rig, verb operate.Verb, filter operate.EventFilter) (int, error) {
	r.T.Helper()
	return operations(r).Size(testenv.Context(r.T), operate.Change{Verb: verb, Filter: filter})
}

// many makes a change of many events to its end, and returns those that the database has refused.
func many(ctx context.Context, r *rig.Rig, change operate.Change) (op operate.Operation, refused []operate.Changed, err error) {
	r.T.Helper()
	o := operations(r)
	if op, err = o.Count(ctx, ada, adasKey, change); err != nil {
		return op, nil, err
	}
	if op, err = o.Confirm(ctx, ada, adasKey, op.ID); err != nil {
		return op, nil, err
	}
	op, err = o.Await(ctx, op.ID, func(operate.Operation) {}, func(r operate.Changed) { refused = append(refused, r) })
	return op, refused, err
}

// emit emits n events of the rig's handler, which wait for an hour.
func (b *bench) emit(n int) []eventqueue.EventID {
	b.t.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: rig.Canvas, Module: rig.Key.Module, Name: rig.Key.Name, Modifier: "_", Value: json.RawMessage("1"), Delay: time.Hour}
	}
	return b.Emit(events...)
}

func (b *bench) count(change operate.Change) operate.Operation {
	b.t.Helper()
	op, err := b.operations.Count(b.ctx, ada, adasKey, change)
	if err != nil {
		b.t.Fatal(err)
	}
	return op
}

func (b *bench) confirm(op operate.Operation) operate.Operation {
	b.t.Helper()
	op, err := b.operations.Confirm(b.ctx, ada, adasKey, op.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return op
}

// work works until nothing is left, and returns the operation as it is then.
func (b *bench) work(op operate.Operation) operate.Operation {
	b.t.Helper()
	for worked := true; worked; {
		var err error
		if worked, err = b.operations.Work(b.ctx); err != nil {
			b.t.Fatal(err)
		}
	}
	return b.get(op)
}

func (b *bench) get(op operate.Operation) operate.Operation {
	b.t.Helper()
	op, err := b.operations.Get(b.ctx, op.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return op
}

func filter() operate.EventFilter {
	canvas := rig.Canvas
	return operate.EventFilter{Canvas: &canvas, Name: rig.Key.Name}
}

// TestEachVerbChangesTheCountedEventsOnly cancels, retries, runs, edits and deletes the events of a filter, one after the other. Those that
// came in after the count, and those of others, stay as they are.
func TestEachVerbChangesTheCountedEventsOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 600 // more than a piece
	b.emit(n)
	value := json.RawMessage("{\"a\": [1,  2], \"text\": \"<&>\"}")
	for _, c := range []struct {
		change operate.Change
		holds  string // of how many events
	}{
		{operate.Change{Verb: operate.VerbEdit, Filter: filter(), Edit: operate.Edit{Value: value, Attributes: map[string]string{}}},
			`SELECT count(*) FROM events_v2 WHERE value = '{"a": [1,  2], "text": "<&>"}'`},
		{operate.Change{Verb: operate.VerbCancel, Filter: filter(), Reason: "no longer"}, `SELECT count(*) FROM event_log WHERE status = 'CANCELLED' AND reason = 'no longer' AND actor = 'token:ada'`},
		{operate.Change{Verb: operate.VerbRetry, Filter: operate.EventFilter{Name: rig.Key.Name, State: operate.StateCancelled}, Edit: operate.Edit{Delay: new(time.Hour)}},
			`SELECT count(*) FROM events_v2 WHERE delay_until > now() + interval '30 minutes'`},
		{operate.Change{Verb: operate.VerbRun, Filter: operate.EventFilter{State: operate.StateDelayed}}, `SELECT count(*) FROM events_v2 WHERE delay_until <= now()`},
		{operate.Change{Verb: operate.VerbDelete, Filter: filter()}, `SELECT 600 - count(*) FROM events_v2`},
	} {
		op := b.count(c.change)
		if op.Counted != n || op.State != operate.OperationCounted {
			t.Fatalf("%s: counted %d as %s, want %d", c.change.Verb, op.Counted, op.State, n)
		}
		if worked, err := b.operations.Work(b.ctx); worked || err != nil {
			t.Fatalf("%s: it has begun before it was confirmed (%v)", c.change.Verb, err)
		}
		var later []eventqueue.EventID
		if c.change.Verb != operate.VerbRetry {
			later = b.emit(1)
		}
		b.confirm(op)
		op = b.work(op)
		if op.State != operate.OperationDone || op.Changed != n || op.EndedAt.IsZero() {
			t.Errorf("%s: %+v, want %d changed", c.change.Verb, op, n)
		}
		if len(later) > 0 {
			if rig.One[int](b.Rig, `WITH gone AS (DELETE FROM events_v2 WHERE id = $1 AND value = '1' AND delay_until > now() RETURNING 1) SELECT count(*) FROM gone`, int64(later[0])) != 1 {
				t.Errorf("%s: an event was changed that came in after the count", c.change.Verb)
			}
		}
		if got := rig.One[int](b.Rig, c.holds); got != n {
			t.Errorf("%s: %s: %d, want %d", c.change.Verb, c.holds, got, n)
		}
	}
}

// TestOperationIsAuditedFromConfirmationToEnd finds who confirmed what, each piece, and the end in the audit log, under the id of the operation.
func TestOperationIsAuditedFromConfirmationToEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(300)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbEdit, Filter: filter(), Edit: operate.Edit{Value: json.RawMessage(`"a secret"`)}}))
	b.work(op)
	entries, err := audit.NewLog("", b.Pool).List(b.ctx, audit.Filter{Operation: op.ID}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	events := 0
	for _, e := range entries {
		actions = append([]string{e.Action}, actions...)
		if e.Name != ada.Name || e.Source != ada.Source || e.Via != ada.Via || e.Canvas == nil || *e.Canvas != rig.Canvas {
			t.Errorf("the entry is not Ada's on her canvas: %+v", e)
		}
		if strings.Contains(string(e.Target)+string(e.After), "secret") {
			t.Errorf("the entry shows the value: %s", e.Target)
		}
		var target struct{ Events []int64 }
		if err := json.Unmarshal(e.Target, &target); err != nil {
			t.Fatal(err)
		}
		events += len(target.Events)
	}
	if got := strings.Join(actions, " "); got != "bulk_edit edit edit bulk_end" || events != 300 {
		t.Errorf("%s of %d events, want bulk_edit edit edit bulk_end of 300", got, events)
	}
	if first := entries[len(entries)-1]; !strings.Contains(string(first.After), `"counted": 300`) || !strings.Contains(string(first.Target), `"name": "greet"`) {
		t.Errorf("the confirmation says neither filter nor count: %s %s", first.Target, first.After)
	}
}

// TestAnotherProgramContinuesAnOperation takes over an operation whose program died within a piece, and counts what that piece
// had done. A program that still holds it has it for itself.
func TestAnotherProgramContinuesAnOperation(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := b.emit(600)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	by := ada
	by.Operation = op.ID
	changer, err := operate.NewChanger(b.Store.As(by), b.Queue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := changer.Cancel(b.ctx, operate.Cancellation{}, ids[:100]...); err != nil {
		t.Fatal(err)
	}
	b.Exec(`UPDATE bulk_operations SET lease = gen_random_uuid(), leased_until = now() + interval '1 hour'`)
	if got := b.work(op); got.State != operate.OperationRunning || got.Changed != 0 {
		t.Fatalf("it was taken from a program that lives: %+v", got)
	}
	b.Exec(`UPDATE bulk_operations SET leased_until = now()`)
	if got := b.work(op); got.State != operate.OperationDone || got.Changed != 600 {
		t.Errorf("%+v, want 600 changed", got)
	}
}

// TestFailedPieceIsTriedAgain has the database refuse all writes of progress for a while: nothing is lost or counted
// twice. What fails too often ends.
func TestFailedPieceIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(300)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`ALTER TABLE bulk_operations ADD CONSTRAINT no_progress CHECK (after_id = 0)`)
	for range 2 { // a piece each, which are done and not reported
		b.fail()
	}
	b.Exec(`ALTER TABLE bulk_operations DROP CONSTRAINT no_progress`)
	if got := b.work(op); got.State != operate.OperationDone || got.Changed != 300 {
		t.Errorf("%+v, want 300 changed", got)
	}
	b.emit(1)
	op = b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`ALTER TABLE event_log RENAME COLUMN last_error TO gone`)
	for b.get(op).State == operate.OperationRunning {
		b.fail()
	}
	if got := b.get(op); got.State != operate.OperationFailed || got.Changed != 0 {
		t.Errorf("%+v, want it failed", got)
	}
}

// TestProgressForgivesFailures: an operation may fail any number of times as long as it gets on.
func TestProgressForgivesFailures(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 2000
	b.emit(n)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbDelete, Filter: filter()}))
	b.Exec(`CREATE SEQUENCE tries`)
	b.Exec(`CREATE FUNCTION every_other() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('tries') % 2 = 0 THEN RAISE 'for a moment' USING ERRCODE = '57014'; END IF;
		RETURN NULL;
	END $$`)
	b.Exec(`CREATE TRIGGER every_other BEFORE DELETE ON events_v2 FOR EACH STATEMENT EXECUTE FUNCTION every_other()`)
	failures := 0
	for b.get(op).State == operate.OperationRunning {
		if _, err := b.operations.Work(b.ctx); err != nil {
			failures++
		}
		b.Exec(`UPDATE bulk_operations SET leased_until = now() WHERE state = 'running'`)
	}
	if got := b.get(op); got.State != operate.OperationDone || got.Changed != n || failures <= 10 {
		t.Errorf("%+v after %d failures, want %d changed after more than ten", got, failures, n)
	}
}

// TestOperationTellsBusyEventsFromRunningOnes in its counts.
func TestOperationTellsBusyEventsFromRunningOnes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ids := b.Emit(b.Copies(6)...)
	b.Claims(ids[:2]...)
	holdRow(b.Rig, ids[2])
	got := b.work(b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()})))
	if want := (operate.Progress{Changed: 3, Running: 2, Busy: 1}); got.State != operate.OperationDone || got.Progress != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestResumedOperationCountsPiecesThatCommittedAfterItsEnd: when an operation fails or is stopped, a piece of it may be under
// way. What that does is counted when the operation is resumed.
func TestResumedOperationCountsPiecesThatCommittedAfterItsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(b *bench, op operate.Operation)
		state operate.OperationState
	}{
		"failed": {func(b *bench, op operate.Operation) {
			for b.get(op).State == operate.OperationRunning {
				b.fail()
			}
		}, operate.OperationFailed},
		"stopped": {func(b *bench, op operate.Operation) {
			b.fail()
			if _, err := b.operations.Stop(b.ctx, ada, op.ID); err != nil {
				b.t.Fatal(err)
			}
		}, operate.OperationStopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ids := b.emit(300)
			op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
			b.Exec(`ALTER TABLE event_log RENAME COLUMN last_error TO gone`)
			c.end(b, op)
			b.Exec(`ALTER TABLE event_log RENAME COLUMN gone TO last_error`)
			if got := b.get(op); got.State != c.state || got.Changed != 0 {
				t.Fatalf("%+v, want it %s", got, c.state)
			}
			by := ada
			by.Operation = op.ID
			changer, err := operate.NewChanger(b.Store.As(by), b.Queue)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := changer.Cancel(b.ctx, operate.Cancellation{}, ids[:100]...); err != nil {
				t.Fatal(err)
			}
			if _, err := b.operations.Resume(b.ctx, ada, op.ID); err != nil {
				t.Fatal(err)
			}
			if got := b.work(op); got.State != operate.OperationDone || got.Changed != 300 {
				t.Errorf("%+v, want 300 changed", got)
			}
		})
	}
}

// fail has a program try an operation in vain, and lets the next try begin at once.
func (b *bench) fail() {
	b.t.Helper()
	if _, err := b.operations.Work(b.ctx); err == nil {
		b.t.Fatal("no error")
	}
	b.Exec(`UPDATE bulk_operations SET leased_until = now() WHERE state = 'running'`)
}

// TestAbandonedOperationIsStopped: a program that starts days later does not make the change; who still wants it resumes it.
func TestAbandonedOperationIsStopped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(3)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`UPDATE bulk_operations SET started_at = now() - interval '2 days'`)
	if got := b.work(op); got.State != operate.OperationStopped || got.Changed != 0 {
		t.Fatalf("%+v, want it stopped", got)
	}
	if _, err := b.operations.Resume(b.ctx, ada, op.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.work(op); got.State != operate.OperationDone || got.Changed != 3 {
		t.Errorf("%+v, want 3 changed", got)
	}
	// It is resumed before a program comes upon it.
	b.emit(2)
	op = b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`UPDATE bulk_operations SET started_at = now() - interval '2 days'`)
	if _, err := b.operations.Resume(b.ctx, ada, op.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.work(op); got.State != operate.OperationDone || got.Changed != 2 {
		t.Errorf("%+v, want 2 changed", got)
	}
}

// TestSlowPiecesGetSmaller has the database time out on statements that delete more than 100 events.
func TestSlowPiecesGetSmaller(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(300)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`
CREATE FUNCTION times_out() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM gone) > 100 THEN
        RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER times_out AFTER DELETE ON events_v2 REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION times_out()`)
	slow := 0
	for b.get(op).State == operate.OperationRunning {
		if _, err := b.operations.Work(b.ctx); err != nil {
			slow++
		}
		b.Exec(`UPDATE bulk_operations SET leased_until = now() WHERE state = 'running'`)
	}
	if got := b.get(op); got.State != operate.OperationDone || got.Changed != 300 || slow == 0 || slow > 5 {
		t.Errorf("%+v after %d that failed, want 300 changed", got, slow)
	}
}

// TestConfirmSurvivesALostAnswer loses the answer to the commit: the operation is running, and the caller is told so.
func TestConfirmSurvivesALostAnswer(t *testing.T) {
	t.Parallel()
	b, proxy := newBenchBehindProxy(t, func() error { return nil })
	b.emit(1)
	op := b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()})
	lost := proxy.Lose("COMMIT\x00", false)
	if got := b.confirm(op); got.State != operate.OperationRunning {
		t.Errorf("it is %s, want it running", got.State)
	}
	<-lost
}

// TestOnlyTheCountingIdentityConfirms refuses another identity, an old count and an unknown id, and starts nothing twice.
func TestOnlyTheCountingIdentityConfirms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(1)
	op := b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()})
	if _, err := b.operations.Confirm(b.ctx, ada, "token:2", op.ID); !errors.Is(err, operate.ErrUnknownOperation) {
		t.Errorf("another identity: %v", err)
	}
	b.Exec(`UPDATE bulk_operations SET expires_at = now() - interval '1 second'`)
	if _, err := b.operations.Confirm(b.ctx, ada, adasKey, op.ID); !errors.Is(err, operate.ErrCountExpired) {
		t.Errorf("an old count: %v", err)
	}
	if _, err := b.operations.Confirm(b.ctx, ada, adasKey, [16]byte{1}); !errors.Is(err, operate.ErrUnknownOperation) {
		t.Errorf("an unknown id: %v", err)
	}
	op = b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.work(op)
	if again := b.confirm(op); again.State != operate.OperationDone {
		t.Errorf("it was started again: %+v", again)
	}
	if n := rig.One[int](b.Rig, `SELECT count(*) FROM audit_log WHERE action = 'bulk_cancel'`); n != 1 {
		t.Errorf("%d confirmations in the audit log, want 1", n)
	}
}

// TestStoppedOperationLeavesTheRest stops an operation before its end: the rest stays as it is.
func TestStoppedOperationLeavesTheRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(10)
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	stopped, err := b.operations.Stop(b.ctx, ada, op.ID)
	if err != nil || stopped.State != operate.OperationStopped {
		t.Fatalf("%+v, %v", stopped, err)
	}
	if got := b.work(op); got.State != operate.OperationStopped || got.Changed != 0 {
		t.Errorf("it went on: %+v", got)
	}
	if again, err := b.operations.Stop(b.ctx, ada, op.ID); err != nil || again.State != operate.OperationStopped {
		t.Errorf("stopping it again: %+v, %v", again, err)
	}
	if _, err := b.operations.Stop(b.ctx, ada, [16]byte{1}); !errors.Is(err, operate.ErrUnknownOperation) {
		t.Errorf("an unknown id: %v", err)
	}
}

// TestOnlyConfirmedOperationsRun confirms while Run runs.
func TestOnlyConfirmedOperationsRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(10)
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- b.operations.Run(ctx) }()
	op := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	testenv.Eventually(t, "the operation is done", func() bool { return b.get(op).State == operate.OperationDone })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	list, err := b.operations.List(b.ctx, []eventqueue.CanvasID{rig.Canvas}, 10)
	if err != nil || len(list) != 1 || list[0].ID != op.ID {
		t.Errorf("the list is %+v, %v", list, err)
	}
	if list, err = b.operations.List(b.ctx, []eventqueue.CanvasID{}, 10); err != nil || len(list) != 0 {
		t.Errorf("the list of no canvas is %+v, %v", list, err)
	}
}

// TestAgesCountFromTheCount: an operation that is late changes what was counted, and no event that has grown old
// enough since.
func TestAgesCountFromTheCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(2)
	b.Exec(`UPDATE events_v2 SET enqueued_at = now() - interval '90 minutes' WHERE id = 1`)
	change := operate.Change{Verb: operate.VerbCancel, Filter: filter()}
	change.Filter.OlderThan = time.Hour
	op := b.confirm(b.count(change))
	b.Exec(`UPDATE events_v2 SET enqueued_at = enqueued_at - interval '2 hours'`)
	b.Exec(`UPDATE bulk_operations SET counted_at = counted_at - interval '2 hours'`)
	if got := b.work(op); op.Counted != 1 || got.Changed != 1 {
		t.Errorf("%+v, want one counted and one changed", got)
	}
}

// TestInvalidOperationIsRefused is refused before anything is written.
func TestInvalidOperationIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	zero := eventqueue.CanvasID{}
	for text, change := range map[string]operate.Change{
		"the filter is empty":       {Verb: operate.VerbCancel},
		"is none of cancel":         {Verb: "destroy", Filter: filter()},
		"canvas_id: is missing":     {Verb: operate.VerbDelete, Filter: operate.EventFilter{Canvas: &zero}},
		"changes nothing":           {Verb: operate.VerbEdit, Filter: filter()},
		"leave it out":              {Verb: operate.VerbRun, Filter: filter(), Edit: operate.Edit{Delay: new(time.Hour)}},
		"only a cancellation":       {Verb: operate.VerbDelete, Filter: filter(), Reason: "why"},
		"reason: is":                {Verb: operate.VerbCancel, Filter: filter(), Reason: strings.Repeat("x", 1<<20)},
		`"failed" is not a state`:   {Verb: operate.VerbCancel, Filter: operate.EventFilter{State: operate.StateFailed}},
		"of events that can be ret": {Verb: operate.VerbRetry, Filter: operate.EventFilter{Name: "x", State: operate.StateWaiting}},
		"value":                     {Verb: operate.VerbEdit, Filter: filter(), Edit: operate.Edit{Value: json.RawMessage(`{`)}},
	} {
		var invalid *operate.InvalidError
		if _, err := b.operations.Count(b.ctx, ada, adasKey, change); !errors.As(err, &invalid) || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %q", change, err, text)
		}
	}
	if n := rig.One[int](b.Rig, `SELECT count(*) FROM bulk_operations`); n != 0 {
		t.Errorf("%d operations were written", n)
	}
}

// TestPruneDeletesEndedAndUnconfirmedOperations deletes what ended long ago and what was never confirmed, and leaves the rest.
func TestPruneDeletesEndedAndUnconfirmedOperations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.emit(1)
	ended := b.confirm(b.count(operate.Change{Verb: operate.VerbRun, Filter: filter()}))
	b.work(ended)
	b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()})
	running := b.confirm(b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()}))
	b.Exec(`UPDATE bulk_operations SET counted_at = counted_at - interval '8 days', ended_at = ended_at - interval '8 days'`)
	b.count(operate.Change{Verb: operate.VerbCancel, Filter: filter()})
	if n, err := b.operations.Prune(b.ctx, operate.RetainOperationsFor, 100); n != 2 || err != nil {
		t.Errorf("%d pruned, %v, want 2", n, err)
	}
	if got := b.get(running); got.State != operate.OperationRunning {
		t.Errorf("%+v", got)
	}
}
