package eventstest_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventstest"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

func newFailing(t *testing.T) (*failing, *eventstest.Queue) {
	t.Helper()
	f := &failing{TB: t}
	return f, newQueue(f, "mail", eventqueue.Policy{}, returns(nil))
}

func TestRequireEmittedComparesTheFieldsThatAreSet(t *testing.T) {
	t.Parallel()
	f, q := newFailing(t)
	plain := emit(t, q, eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`{"to": "ada", "order": 12345678901234567890}`), UniqueKey: "u",
		OrderingKey: "o", Delay: time.Minute, Attributes: map[string]string{"source": "web", "user": "7"}})
	emit(t, q, eventqueue.NewEvent{Name: "bill", Modifier: "eur", ParentID: plain, Priority: "high"})
	for _, want := range []eventqueue.NewEvent{
		{Name: "mail"},
		{Module: "WORKER", Name: "mail", Modifier: "_", Canvas: service.DefaultCanvas},
		{Value: json.RawMessage(`{"order":12345678901234567890,"to":"ada"}`)},
		{Name: "mail", OrderingKey: "o", UniqueKey: "u", Attributes: map[string]string{"source": "web"}},
		{Name: "mail", Delay: time.Minute},
		{Priority: "normal"},
		{Name: "mail", DelayUntil: q.Now().Add(time.Minute)},
	} {
		if got := q.RequireEmitted(want); got.ID != plain {
			t.Errorf("%+v has found %v", want, got)
		}
	}
	for _, unwanted := range []eventqueue.NewEvent{
		{Name: "mail", Modifier: "eur"},
		{Name: "mail", Value: json.RawMessage(`{"order":12345678901234567891,"to":"ada"}`)},
		{Name: "mail", Value: json.RawMessage(`{"to":"ada"}`)},
		{Name: "mail", Canvas: eventqueue.CanvasID{1}},
		{Name: "mail", OrderingKey: "x"},
		{Name: "mail", UniqueKey: "x"},
		{Name: "mail", Priority: "high"},
		{Name: "bill", Priority: "normal"},
		{Name: "bill", Priority: "low"},
		{Name: "mail", ParentID: plain},
		{Name: "bill", ParentID: plain + 1},
		{Name: "mail", Attributes: map[string]string{"source": "web", "user": "8"}},
		{Name: "mail", Delay: time.Hour},
		{Name: "mail", DelayUntil: q.Now()},
	} {
		q.RequireNotEmitted(unwanted)
		if f.messageOf(func() { q.RequireEmitted(unwanted) }) == "" {
			t.Errorf("%+v was found", unwanted)
		}
	}
	if all := q.Emitted(); len(all) != 2 || all[0].ID != plain || all[0].Delay != time.Minute || all[1].ParentID != plain || all[1].Priority != "high" {
		t.Errorf("emitted were %v", all)
	}
}

func TestFailureNamesTheNearestEvent(t *testing.T) {
	t.Parallel()
	f, q := newFailing(t)
	want := eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`{"to":["ada","bob"]}`)}
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(want) }),
		`no such event was emitted: Name "mail", Value {"to":["ada","bob"]}`, "nothing was emitted and committed; for a transaction that has not ended, use In")
	emit(t, q, eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`{"to":["ada","eve"]}`)})
	emit(t, q, eventqueue.NewEvent{Name: "bill", Value: json.RawMessage(`{"to":["ada","bob"]}`), OrderingKey: "k", Priority: "low", Delay: time.Hour})
	q.Drain()
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(want) }),
		`the nearest is event 1: Value has "eve" at .to[1], want {"to":["ada","bob"]}`, "emitted were:",
		`event 1 for WORKER/mail/_, which has ended: {"to":["ada","eve"]}`,
		`event 2 for WORKER/bill/_, ordering key "k", priority "low", delayed by 1h0m0s: {"to":["ada","bob"]}`)
	wantMessage(t, f.messageOf(func() {
		q.RequireEmitted(eventqueue.NewEvent{Name: "mial", Value: json.RawMessage(`{"to":["ada","bob"]}`)})
	}),
		`the nearest is event 2: Name is "bill", want "mial"`)
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(eventqueue.NewEvent{Name: "mail", Delay: time.Hour}) }),
		"the nearest is event 1: Delay is not known any more: the event has ended, want 1h0m0s")
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(eventqueue.NewEvent{Name: "mail", Priority: "high"}) }),
		`the nearest is event 1: Priority is not known any more: the event has ended, want "high"`)
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(eventqueue.NewEvent{Name: "bill", Priority: "normal"}) }),
		`the nearest is event 2: Priority is "low", want "normal"`)
	wantMessage(t, f.messageOf(func() { q.RequireNotEmitted(eventqueue.NewEvent{Name: "mail"}) }),
		`what should not be emitted was: Name "mail"`, "event 1 for WORKER/mail/_")
}

func TestTypedEventsAreFoundByTheirFields(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	q := eventstest.New(f, service.Config{DatabaseURL: testenv.DatabaseURL(t)})
	charged := 0
	err := service.On(q.Service, "charge", func(context.Context, OrderPlaced, *eventqueue.Run) error {
		charged++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delayed := typed.With(OrderPlaced{Order: 2}, func(e *eventqueue.NewEvent) { e.OrderingKey = "customer 7" })
	if _, err := q.Service.EmitTyped(t.Context(), OrderPlaced{Order: 1, Mail: "ada"}, delayed); err != nil {
		t.Fatal(err)
	}
	q.RequireEmitted(OrderPlaced{Order: 1, Mail: "ada"})
	q.RequireEmitted(delayed)
	q.RequireNotEmitted(OrderPlaced{Order: 1})
	wantMessage(t, f.messageOf(func() { q.RequireEmitted(OrderPlaced{Order: 3}) }),
		`no such event was emitted: Name "PLACED", Module "ORDER", Modifier "_", Value {"Order":3}`, `the nearest is event 2: Value has 2 at .Order, want {"Order":3}`)
	q.Drain()
	if charged != 2 {
		t.Errorf("%d orders were charged", charged)
	}
	run := q.RequireEmitted(eventqueue.NewEvent{Module: "ORDER", Name: "charge", Value: json.RawMessage(`{"Order":2}`)})
	q.RequireAttempts(run.ID, 1)
	q.RequireEmitted(OrderPlaced{Order: 2}) // also when it has ended
}

// What is emitted in a transaction is found in it, whatever its kind, and nowhere else before its commit.
func TestRequireEmittedInATransaction(t *testing.T) {
	t.Parallel()
	f, q := newFailing(t)
	ctx := testenv.Context(t)
	want := eventqueue.NewEvent{Name: "mail", Value: json.RawMessage(`1`)}
	err := q.Service.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		wantMessage(t, f.messageOf(func() { q.In(tx).RequireEmitted(want) }), "was emitted in this transaction or before it: ", "nothing was emitted")
		id, err := tx.Emit(ctx, want)
		if err != nil {
			return err
		}
		if got := q.In(tx).RequireEmitted(want); got.ID != id[0] {
			t.Errorf("it has found %v", got)
		}
		wantMessage(t, f.messageOf(func() { q.In(tx).RequireNotEmitted(want) }), "what should not be emitted was in this transaction or before it: ")
		q.RequireNotEmitted(want)
		return errors.New("no")
	})
	if err == nil {
		t.Fatal("the transaction has committed")
	}
	own, err := pgxpool.New(ctx, q.Service.Pool().Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	pgxTx, err := own.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pgxTx.Rollback(ctx) }()
	if _, err := q.Service.EmitTx(ctx, pgxTx, want); err != nil {
		t.Fatal(err)
	}
	q.In(pgxTx).RequireEmitted(want)
	db := stdlib.OpenDBFromPool(q.Service.Pool())
	defer func() { _ = db.Close() }()
	var sqlTx *sql.Tx
	if sqlTx, err = db.BeginTx(ctx, nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sqlTx.Rollback() }()
	q.InSQL(sqlTx).RequireNotEmitted(want)
	if _, err := q.Service.EmitSQL(ctx, sqlTx, want); err != nil {
		t.Fatal(err)
	}
	if all := q.InSQL(sqlTx).Emitted(); len(all) != 1 {
		t.Errorf("emitted were %v", all)
	}
	q.InSQL(sqlTx).RequireEmitted(want)
	q.RequireNotEmitted(want)
	if err := pgxTx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if all := q.Drain(); len(all) != 1 { // by the clock of the test it is due at once
		t.Errorf("of a pool of the program's own: %+v", all)
	}
}

func TestPatternsThatMeanNothingAreRefused(t *testing.T) {
	t.Parallel()
	f, q := newFailing(t)
	for want, event := range map[string]any{
		"RequireEmitted: the event has no field that is set, so any event is like it: set its Name":       eventqueue.NewEvent{},
		"RequireEmitted: UniqueMode, UniqueFor and MaxWait cannot be compared: leave them out":            eventqueue.NewEvent{Name: "a", UniqueFor: 1},
		"RequireEmitted: Value {to} is not valid JSON":                                                    eventqueue.NewEvent{Value: json.RawMessage(`{to}`)},
		"RequireEmitted: string is neither an eventqueue.NewEvent nor a typed event":                      "mail",
		"RequireEmitted: eventstest_test.OrderPlaced is not known to this bus: call typed.Declare for it": OrderPlaced{},
	} {
		wantMessage(t, f.messageOf(func() { q.RequireEmitted(event) }), want)
	}
}
