package typed_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx of database/sql

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// TestChainRunsParentsFirst adds the handlers in another order than they are
// to run in.
func TestChainRunsParentsFirst(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "add-2", func(e fileAdded) string { return e.ID + " " + e.Name }, typed.Synchronous())
	note(r, "add-1", func(e fileAdded) string { return e.ID + " " + e.Name }, typed.Synchronous())
	note(r, "file", func(e fileEvent) string { return e.ID }, typed.Synchronous())
	note(r, "index", func(e recordEvent) string { return e.ID })
	note(r, "record", func(e recordEvent) string { return e.ID }, typed.Synchronous())
	note(r, "created", func(e recordCreated) string { return e.ID + e.Labels["de"] })
	r.run()
	r.emitTyped(fileAdded{fileEvent{recordEvent{"17"}}, "a.txt"})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	want := []string{"record RECORD.FILE.ADD 17", "file RECORD.FILE.ADD 17", "add-2 RECORD.FILE.ADD 17 a.txt",
		"add-1 RECORD.FILE.ADD 17 a.txt", "index RECORD.FILE.ADD 17"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("the calls are %q, want %q", r.calls, want)
	}
	got := rig.One[string](r.Rig, `SELECT string_agg(module || '/' || name || '/' || modifier, ' ' ORDER BY id) FROM event_log`)
	if got != "RECORD/FILE.ADD/_ RECORD/index/RECORD.FILE.ADD" {
		t.Errorf("the rows were %s", got)
	}

	// A pointer, a child with its own handler, and the parent itself.
	r.emitTyped(&recordCreated{recordEvent{"18"}, "t", map[string]string{"de": "!"}}, recordEvent{"19"})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2+3+2)
	for _, want := range []string{"record RECORD.CREATE 18", "index RECORD.CREATE 18", "created RECORD.CREATE 18!",
		"record RECORD 19", "index RECORD 19"} {
		if n := r.count(want); n != 1 {
			t.Errorf("%q came %d times; all: %q", want, n, r.calls)
		}
	}
	if len(r.calls) != len(want)+5 {
		t.Errorf("the calls are %q", r.calls)
	}
}

// TestAsynchronousHandlerIsRetriedAlone has one of three fail three
// times, which only its own policy allows.
func TestAsynchronousHandlerIsRetriedAlone(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "count", func(e recordEvent) string { return e.ID }, typed.Synchronous())
	note(r, "index", func(e recordEvent) string { return e.ID })
	policy, retries := rig.Quick(), 3
	policy.MaxRetries = &retries
	r.ok(typed.On(r.bus, "mail", func(_ context.Context, e recordCreated, run *eventqueue.Run) error {
		r.called("mail " + e.ID)
		if run.Retries < 3 {
			return errors.New("no mail server")
		}
		return nil
	}, typed.WithPolicy(policy)))
	r.run()
	r.emitTyped(recordCreated{recordEvent: recordEvent{"17"}})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
	for what, want := range map[string]int{"count RECORD.CREATE 17": 1, "index RECORD.CREATE 17": 1, "mail 17": 4} {
		if n := r.count(what); n != want {
			t.Errorf("%q came %d times, want %d", what, n, want)
		}
	}
	if got := rig.One[int](r.Rig, `SELECT retries FROM event_log WHERE name = 'mail'`); got != 3 {
		t.Errorf("mail has %d retries, want 3", got)
	}
}

// TestFailingSynchronousHandlerRepeatsTheEvent has the second of two fail once:
// nothing has been emitted by then.
func TestFailingSynchronousHandlerRepeatsTheEvent(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "first", func(e recordEvent) string { return e.ID }, typed.Synchronous())
	r.ok(typed.On(r.bus, "second", func(_ context.Context, e recordCreated, run *eventqueue.Run) error {
		r.called("second " + e.ID)
		if n := r.Waiting(); n != 1 {
			t.Errorf("%d events are there while synchronous handlers run, want 1", n)
		}
		if run.Retries == 0 {
			return errors.New("not yet")
		}
		return nil
	}, typed.Synchronous()))
	note(r, "mail", func(e recordCreated) string { return e.ID })
	r.run()
	r.emitTyped(recordCreated{recordEvent: recordEvent{"17"}})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	for what, want := range map[string]int{"first RECORD.CREATE 17": 2, "second 17": 2, "mail RECORD.CREATE 17": 1} {
		if n := r.count(what); n != want {
			t.Errorf("%q came %d times, want %d", what, n, want)
		}
	}
	for _, out := range r.Outcomes.List() {
		if out.Label == machine.RetryAllowed && !strings.Contains(out.Err.Error(), "synchronous handler second: not yet") {
			t.Errorf("the error is %v", out.Err)
		}
	}
}

// TestDispatchWithoutItsLockEmitsNothing takes the event over between its
// synchronous handler and its end.
func TestDispatchWithoutItsLockEmitsNothing(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	r.ok(typed.On(r.bus, "slow", func(context.Context, recordEvent, *eventqueue.Run) error {
		r.Exec(`UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`)
		return nil
	}, typed.Synchronous()))
	note(r, "mail", func(e recordEvent) string { return e.ID })
	r.run()
	r.emitTyped(recordEvent{"17"})
	r.Outcomes.Await(t, machine.LockLost, 1)
	if n, kept := r.Waiting(), r.Logged("COMPLETED"); n != 1 || kept != 0 {
		t.Errorf("%d rows and %d ended, want the event alone", n, kept)
	}
}

// TestSynchronousHandlerCannotCompleteTheEvent: the others would never hear.
func TestSynchronousHandlerCannotCompleteTheEvent(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	r.ok(typed.On(r.bus, "eager", func(ctx context.Context, _ recordEvent, run *eventqueue.Run) error {
		err := run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
		in := run.CompleteIn(ctx, nil)
		if err == nil || in == nil || !strings.Contains(err.Error(), "synchronous handler") {
			t.Errorf("the errors are %v and %v", err, in)
		}
		return nil
	}, typed.Synchronous()))
	// An asynchronous one can.
	r.ok(typed.On(r.bus, "exact", func(ctx context.Context, _ recordEvent, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, err := r.bus.EmitIn(ctx, tx, run.Canvas, fileEvent{})
			return err
		})
	}))
	r.ok(typed.Declare[fileEvent](r.bus))
	note(r, "end", func(e fileEvent) string { return e.ID }, typed.Synchronous())
	r.ok(r.bus.Register(r.Handlers))
	stop := r.Start(worker.Config{})
	r.emitTyped(recordEvent{"17"})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
	stop()
	if n := r.count("end RECORD.FILE "); n == 0 {
		t.Errorf("the calls are %q", r.calls)
	}
}

// TestMismatchedValueEndsAsFailed emits past the bus.
func TestMismatchedValueEndsAsFailed(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "index", func(e recordEvent) string { return e.ID }, typed.Synchronous())
	note(r, "mail", func(e recordCreated) string { return e.Title }, typed.Strict())
	note(r, "title", func(e recordCreated) string { return strconv.Quote(e.Title) })
	r.run()
	raw := func(name, modifier, value string) eventqueue.NewEvent {
		return eventqueue.NewEvent{Canvas: rig.Canvas, Module: "RECORD", Name: name, Modifier: modifier, Value: json.RawMessage(value)}
	}
	r.Emit(raw("CREATE", "_", `{"id": "1", "labels": {}}`),
		raw("CREATE", "_", `{"id": "2", "title": "t", "labels": {"de": 7}}`),
		raw("mail", "RECORD.CREATE", `{"id": 3, "title": "t", "labels": {}}`),
		raw("CREATE", "_", `{"id": "4", "title": "t", "labels": null, "from a later version": [1]}`))
	r.Outcomes.Await(t, machine.FailedForGood, 3)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 5)
	got := rig.One[string](r.Rig, `SELECT string_agg(last_error, E'\n' ORDER BY id) FROM event_log WHERE status = 'FAILED' AND retries = 0`)
	want := `event RECORD.CREATE as typed_test.recordCreated: field "labels.de" is the number 7: it must be a string
event RECORD.CREATE as typed_test.recordCreated: field "id" is the number 3: it must be a string
event RECORD.CREATE as typed_test.recordCreated: field "title" is missing`
	if got != want {
		t.Errorf("the errors are:\n%s\nwant:\n%s", got, want)
	}
	slices.Sort(r.calls)
	if !slices.Equal(r.calls, []string{"index RECORD.CREATE 1", "index RECORD.CREATE 4", "mail RECORD.CREATE t", `title RECORD.CREATE ""`, `title RECORD.CREATE "t"`}) {
		t.Errorf("the calls are %q", r.calls)
	}
}

// TestTypedEventsJoinTransactions reads from outside while each transaction is open, and rolls
// one of each kind back.
func TestTypedEventsJoinTransactions(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	r.ok(typed.Declare[recordCreated](r.bus))
	ctx := testenv.Context(t)
	silent := func(when string) {
		t.Helper()
		if n, m := r.Waiting(), r.Notifier.Ready(); n != 0 || m != 0 {
			t.Errorf("%s: %d rows and %d notifications can be seen", when, n, m)
		}
	}
	notified := 0
	awaits := func(when string, rows int) {
		t.Helper()
		notified += r.Notified()
		if n := r.Waiting(); n != rows || notified != rows {
			t.Errorf("%s: %d rows and %d notified events, want %d of each", when, n, notified, rows)
		}
	}
	event := recordCreated{recordEvent: recordEvent{"17"}}
	unit := func(end error) error {
		return r.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			for range 2 {
				if _, err := r.bus.EmitIn(ctx, tx, rig.Canvas, event); err != nil {
					return err
				}
			}
			silent("a unit of work is open")
			return end
		})
	}
	if err := unit(errors.New("no")); err == nil {
		t.Error("the unit of work did not fail")
	}
	silent("a unit of work was rolled back")

	tx, err := r.Pool.Begin(ctx)
	r.ok(err)
	_, err = r.bus.EmitTx(ctx, tx, rig.Canvas, event)
	r.ok(err)
	r.ok(tx.Rollback(ctx))
	silent("a transaction was rolled back")

	r.ok(unit(nil))
	awaits("a unit of work has committed", 2)

	tx, err = r.Pool.Begin(ctx)
	r.ok(err)
	pending, err := r.bus.EmitTx(ctx, tx, rig.Canvas, event)
	r.ok(err)
	awaits("a transaction is open", 2)
	r.ok(tx.Commit(ctx))
	r.ok(pending.Notify(ctx))
	awaits("a transaction has committed", 3)

	db, err := sql.Open("pgx", r.Pool.Config().ConnString())
	r.ok(err)
	defer func() { _ = db.Close() }()
	other, err := db.BeginTx(ctx, nil)
	r.ok(err)
	pending, err = r.bus.EmitSQL(ctx, other, rig.Canvas, event, event)
	r.ok(err)
	r.ok(other.Commit())
	r.ok(pending.Notify(ctx))
	awaits("a transaction of database/sql has committed", 5)
	if got := rig.One[string](r.Rig, `SELECT string_agg(DISTINCT module || '/' || name || '/' || modifier || ' ' || value, ',') FROM events_v2`); got != `RECORD/CREATE/_ {"id":"17","title":"","labels":null}` {
		t.Errorf("the rows are %s", got)
	}
}

// TestTypedHandlerIsPausedAlone holds back the mail and nothing else.
func TestTypedHandlerIsPausedAlone(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "index", func(e recordEvent) string { return e.ID })
	note(r, "mail", func(e recordCreated) string { return e.ID })
	rules, err := operate.NewRules(r.Store, r.Queue)
	r.ok(err)
	ctx := testenv.Context(t)
	scope := eventqueue.Scope{Canvas: rig.Canvas, Module: "RECORD", Name: "mail"}
	_, err = rules.Add(ctx, operate.PauseRule, scope)
	r.ok(err)
	r.run()
	r.emitTyped(recordCreated{recordEvent: recordEvent{"17"}})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
	r.Outcomes.Await(t, machine.Paused, 1)
	if !slices.Equal(r.calls, []string{"index RECORD.CREATE 17"}) {
		t.Errorf("the calls are %q", r.calls)
	}
	_, _, err = rules.Lift(ctx, operate.PauseRule, scope)
	r.ok(err)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
}

// TestEventsOutliveAChangeOfTheirHandler leaves an event of a handler in the
// table, which the next version has moved to the parent and made synchronous.
func TestEventsOutliveAChangeOfTheirHandler(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	note(r, "mail", func(e recordEvent) string { return e.ID }, typed.Synchronous())
	r.ok(typed.Declare[recordCreated](r.bus))
	r.run()
	r.Emit(eventqueue.NewEvent{Canvas: rig.Canvas, Module: "RECORD", Name: "mail", Modifier: "RECORD.CREATE",
		Value: json.RawMessage(`{"id": "17", "title": "", "labels": {}}`)})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if !slices.Equal(r.calls, []string{"mail RECORD.CREATE 17"}) {
		t.Errorf("the calls are %q", r.calls)
	}
}

// TestTypedEventMayBeDelayed uses what NewEvent returns.
func TestTypedEventMayBeDelayed(t *testing.T) {
	t.Parallel()
	r := newTypedRig(t)
	r.ok(typed.Declare[recordEvent](r.bus))
	event, err := r.bus.NewEvent(rig.Canvas, recordEvent{"17"})
	r.ok(err)
	event.Delay = time.Hour
	r.Emit(event)
	if !rig.One[bool](r.Rig, `SELECT delay_until > clock_timestamp() + interval '50 minutes' FROM events_v2`) {
		t.Error("the event is due at once")
	}
}
