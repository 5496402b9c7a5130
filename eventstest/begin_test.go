package eventstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func register(t testing.TB, q *eventstest.Queue, handle func() error) {
	t.Helper()
	h := eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return handle() })
	if err := q.Service.Register(eventqueue.HandlerKey{Name: "mail"}, h, eventqueue.Policy{}); err != nil {
		t.Fatal(err)
	}
}

// charge is a handler that completes its event with what it writes and emits.
func charge(fails error) func(ctx context.Context, e OrderPlaced, run *eventqueue.Run) error {
	return func(ctx context.Context, e OrderPlaced, run *eventqueue.Run) error {
		return run.CompleteTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO charges VALUES ($1)`, e.Order); err != nil {
				return err
			}
			if _, err := tx.Emit(ctx, eventqueue.NewEvent{Name: "receipt", Value: json.RawMessage(`1`)}); err != nil {
				return err
			}
			return fails
		})
	}
}

func charges(t *testing.T, q *eventstest.Queue) (n int) {
	t.Helper()
	if err := q.Service.Pool().QueryRow(testenv.Context(t), `SELECT count(*) FROM charges`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBeginRunsAHandlerThatCompletesItsEvent calls a handler with a run that can be completed, and with one that the test has made.
func TestBeginRunsAHandlerThatCompletesItsEvent(t *testing.T) {
	t.Parallel()
	q := eventstest.New(t, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	if _, err := q.Service.Pool().Exec(testenv.Context(t), `CREATE TABLE charges (id int)`); err != nil {
		t.Fatal(err)
	}
	if err := service.On(q.Service, "charge", charge(nil)); err != nil {
		t.Fatal(err)
	}
	order := OrderPlaced{Order: 7}
	err := charge(nil)(t.Context(), order, &eventqueue.Run{})
	if err == nil || !strings.Contains(err.Error(), "in a test of a handler, begin the run with Begin of package eventstest") {
		t.Errorf("with a run of the test's own: %v", err)
	}

	ctx, run := q.Begin(order)
	if run.Attempt != 1 || string(run.Value) != `{"Order":7}` {
		t.Errorf("the run is %+v", run)
	}
	if err := charge(errDown)(ctx, order, run); !errors.Is(err, errDown) || charges(t, q) != 0 {
		t.Errorf("a failed CompleteTx has returned %v and left %d charges", err, charges(t, q))
	}
	q.RequireState(run.ID, eventstest.Running)
	q.RequireNotEmitted(eventqueue.NewEvent{Name: "receipt"})
	if err := charge(nil)(ctx, order, run); err != nil || charges(t, q) != 1 {
		t.Fatalf("CompleteTx has returned %v and left %d charges", err, charges(t, q))
	}
	q.RequireState(run.ID, eventstest.Completed)
	q.RequireEmitted(eventqueue.NewEvent{Name: "receipt", ParentID: run.ID})
	if err := charge(nil)(ctx, order, run); !errors.Is(err, worker.ErrCompleted) {
		t.Errorf("a second CompleteTx has returned %v", err)
	}

	ctx, run = q.Begin(eventqueue.NewEvent{Name: "mail", OrderingKey: "k", Value: json.RawMessage(`"` + strings.Repeat("x", 255<<10) + `"`)})
	tx, err := q.Service.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(run.CompleteIn(ctx, tx), tx.Commit(ctx)); err != nil {
		t.Fatal(err)
	}
	q.RequireState(run.ID, eventstest.Completed)
}

// An event of which the handler did not complete its run stays as a worker that died would leave it.
func TestRunThatIsNotCompletedIsTakenOver(t *testing.T) {
	t.Parallel()
	q := newQueue(t, "mail", eventqueue.Policy{}, returns(nil))
	ctx, run := q.Begin(eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`1`)})
	if all := q.Drain(); len(all) != 0 {
		t.Errorf("while it runs: %+v", all)
	}
	q.Advance(time.Hour)
	q.RequireState(run.ID, eventstest.Expired)
	if all := q.Drain(); len(all) != 1 || all[0].Event != run.ID {
		t.Errorf("after its lock has expired: %+v", all)
	}
	err := run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
	if !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("CompleteTx has returned %v", err)
	}
}

func TestBeginSaysWhyAnEventMayNotRun(t *testing.T) {
	t.Parallel()
	f, q := newFailing(t)
	value := json.RawMessage(`1`)
	wantMessage(t, f.messageOf(func() { q.Begin(eventqueue.NewEvent{Value: value}) }), "Begin: the event has no Name")
	wantMessage(t, f.messageOf(func() { q.Begin(eventqueue.NewEvent{Name: "mail", Value: value, Delay: time.Hour}) }), "claim event 1: it may not run: DelayNotYet")
	wantMessage(t, f.messageOf(func() { q.Begin(eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`{`)}) }), "emit an event to begin its run", "value")
	q.Begin(eventqueue.NewEvent{Name: "mail", Value: value, OrderingKey: "k"})
	wantMessage(t, f.messageOf(func() { q.Begin(eventqueue.NewEvent{Name: "mail", Value: value, OrderingKey: "k"}) }), "it may not run: NotItsTurn")
	ctx, run := q.Begin(eventqueue.NewEvent{Name: "mail", Value: value, UniqueKey: "u", UniqueFor: time.Hour})
	if err := run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	wantMessage(t, f.messageOf(func() { q.Begin(eventqueue.NewEvent{Name: "mail", Value: value, UniqueKey: "u"}) }), `its unique key "u" is that of event 4, which has ended`)
}
