package eventqueue_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

func TestEmitManyKeepsTheOrderAndTheBytes(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	events := make([]eventqueue.NewEvent, 2500)
	for i := range events {
		events[i] = r.Event(fmt.Sprintf(`{ "n":%d, "s": "ü😀\t\\u0041", "x": 1e400}`, i))
	}
	ids := r.Emit(events...)
	for i, id := range ids {
		if i > 0 && id <= ids[i-1] {
			t.Fatalf("id %d of event %d is not above %d", id, i, ids[i-1])
		}
		if i%250 == 0 {
			if got := rig.One[string](r, `SELECT value FROM events_v2 WHERE id = $1`, id); got != string(events[i].Value) {
				t.Errorf("event %d holds %s", i, got)
			}
		}
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE retries = 0 AND locked_at IS NULL AND attempts = 0
		AND delay_until = enqueued_at AND notified_at IS NOT NULL`); n != len(events) {
		t.Errorf("%d of %d rows are as documented", n, len(events))
	}
	if n := r.Notified(); n != len(events) {
		t.Errorf("%d of %d events have a notification", n, len(events))
	}
}

func TestEmitRefusesBadInputAndWritesNothing(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	good := r.Event(`1`)
	bad := func(change func(*eventqueue.NewEvent)) eventqueue.NewEvent { e := good; change(&e); return e }
	value := func(v string) eventqueue.NewEvent {
		return bad(func(e *eventqueue.NewEvent) { e.Value = json.RawMessage(v) })
	}
	for _, c := range []struct {
		event eventqueue.NewEvent
		field string
		text  string
	}{
		{value(""), "value", "is empty"},
		{value(`{"a":}`), "value", "not JSON, at byte 6"},
		{value(`1 2`), "value", "not JSON"},
		{value("\"\xff\""), "value", "not valid UTF-8"},
		{value(`"a\u0000b"`), "value", `\u0000 at byte 2`},
		{value(`"\ud800"`), "value", "half a surrogate pair at byte 1"},
		{value(`"\ud800\u0041"`), "value", "half a surrogate pair"},
		{value(`"\udc00\ud800"`), "value", "half a surrogate pair"},
		{value(`"` + strings.Repeat("x", 256<<10) + `"`), "value", "the limit is 262144"},
		{bad(func(e *eventqueue.NewEvent) { e.Canvas = eventqueue.CanvasID{} }), "canvas_id", "is missing"},
		{bad(func(e *eventqueue.NewEvent) { e.Module = "" }), "module", "is empty"},
		{bad(func(e *eventqueue.NewEvent) { e.Name = strings.Repeat("n", 256) }), "name", "the limit is 255"},
		{bad(func(e *eventqueue.NewEvent) { e.Modifier = "a\nb" }), "modifier", "U+000A"},
		{bad(func(e *eventqueue.NewEvent) { e.Name = "\xc3" }), "name", "not valid UTF-8"},
		{bad(func(e *eventqueue.NewEvent) { e.Delay = -1 }), "delay_until", "negative"},
		{bad(func(e *eventqueue.NewEvent) { e.Delay = 367 * 24 * time.Hour }), "delay_until", "limit"},
		{bad(func(e *eventqueue.NewEvent) { e.DelayUntil = time.Now().AddDate(2, 0, 0) }), "delay_until", "limit"},
		{bad(func(e *eventqueue.NewEvent) { e.DelayUntil = time.Now(); e.Delay = 1 }), "delay_until", "both"},
	} {
		_, err := r.Queue.EmitMany(testenv.Context(t), []eventqueue.NewEvent{good, c.event})
		var invalid *eventqueue.InvalidError
		if !errors.As(err, &invalid) || invalid.Index != 1 || invalid.Field != c.field || !strings.Contains(invalid.Problem, c.text) {
			t.Errorf("want event 1, %s … %s; got %v", c.field, c.text, err)
		}
	}
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// TestEventWithoutCanvasGetsTheConfiguredOne, in every form of emit, and the caller's
// events stay as they are.
func TestEventWithoutCanvasGetsTheConfiguredOne(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	r := rig.New(t)
	queue, err := eventqueue.New(r.Store, r.Notifier, eventqueue.QueueConfig{Canvas: eventqueue.CanvasID{8}, Module: "M", Modifier: "m"})
	if err != nil {
		t.Fatal(err)
	}
	bare := eventqueue.NewEvent{Name: "n", Value: json.RawMessage(`1`)}
	full := eventqueue.NewEvent{Canvas: eventqueue.CanvasID{9}, Module: "O", Name: "n", Modifier: "o", Value: json.RawMessage(`1`)}
	events := []eventqueue.NewEvent{full, bare}
	_, one := queue.Emit(ctx, bare)
	_, many := queue.EmitMany(ctx, events)
	within := queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error { _, err := tx.Emit(ctx, bare); return err })
	own := pgx.BeginFunc(ctx, r.Pool, func(tx pgx.Tx) error { _, err := queue.EmitTx(ctx, tx, bare); return err })
	if err := errors.Join(one, many, within, own); err != nil {
		t.Fatal(err)
	}
	if events[1].Module != "" {
		t.Errorf("the caller's event has become %+v", events[1])
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1 AND module = 'M' AND modifier = 'm'`, [16]byte{8}); n != 4 {
		t.Errorf("%d of 4 events are the configured ones", n)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE module = 'O' AND modifier = 'o'`); n != 1 {
		t.Errorf("%d of 1 events are those that were named", n)
	}
	for _, c := range []eventqueue.QueueConfig{{Module: "\x00"}, {Modifier: strings.Repeat("x", 300)}} {
		if _, err := eventqueue.New(r.Store, r.Notifier, c); err == nil || !strings.Contains(err.Error(), "Mod") {
			t.Errorf("with %.20q: %v", c.Module+c.Modifier, err)
		}
	}
}

func TestEmitAcceptsTheEdges(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	for _, v := range []string{`null`, `""`, `"\\u0000"`, `"\ud83d\ude00"`, ` {} `, `"` + strings.Repeat("x", 256<<10-2) + `"`} {
		id := r.Emit(r.Event(v))[0]
		if got := rig.One[string](r, `SELECT value FROM events_v2 WHERE id = $1`, id); got != v {
			t.Errorf("%.20s came out as %.20s", v, got)
		}
	}
	past := r.Event(`1`)
	past.DelayUntil = time.Now().Add(-time.Hour)
	id := r.Emit(past)[0]
	if !rig.One[bool](r, `SELECT delay_until = enqueued_at FROM events_v2 WHERE id = $1`, id) {
		t.Error("a delay_until that has passed does not mean now")
	}
}

func TestTransactionNotifiesAfterItsCommitOnly(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	r.Exec(`CREATE TABLE mine (n int)`)
	err := r.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO mine VALUES (1)`); err != nil {
			return err
		}
		if _, err := tx.Emit(ctx, r.Event(`1`), r.Event(`2`)); err != nil {
			return err
		}
		if n := r.Notifier.Len(); n != 0 {
			t.Errorf("%d notifications before the commit", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, m := r.Notified(), r.Waiting(); n != 2 || m != 2 {
		t.Errorf("%d notified events and %d rows after the commit, want 2 and 2", n, m)
	}

	boom := errors.New("boom")
	err = r.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Emit(ctx, r.Event(`3`)); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = r.Queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, _ = tx.Emit(ctx, r.Event(`4`))
			panic("boom")
		})
	}()
	if n, m := r.Notified(), r.Waiting(); n != 0 || m != 2 {
		t.Errorf("%d further notified events and %d rows after two rollbacks, want 0 and 2", n, m)
	}
}

func TestEmitJoinsTheCallersTransaction(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)

	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rolledBack, err := r.Queue.EmitTx(ctx, tx, r.Event(`1`))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rolledBack.Notify(ctx); err != nil {
		t.Errorf("Notify after a rollback: %v", err)
	}
	if n, m := r.Notifier.Len(), r.Waiting(); n != 0 || m != 0 {
		t.Errorf("%d notifications and %d rows after a rollback", n, m)
	}

	if tx, err = r.Pool.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	pending, err := r.Queue.EmitTx(ctx, tx, r.Event(`1`), r.Event(`2`))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 2 {
		t.Errorf("%d rows have a pending notification after the commit, want 2", n)
	}
	for range 2 { // the second time there is nothing left to do
		if err := pending.Notify(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.Notified(); n != 2 {
		t.Errorf("%d events have a notification, want 2", n)
	}
}

func TestEmitWorksThroughDatabaseSQL(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	db := stdlib.OpenDBFromPool(r.Pool)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hard := r.Event(`{"a": "quote \" comma , brace } back \\ ü"}`)
	hard.Modifier = `a "b", {c} \d NULL`
	later := r.Event(`2`)
	later.Delay = time.Hour
	pending, err := r.Queue.EmitSQL(ctx, tx, hard, later)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := rig.One[string](r, `SELECT modifier || value FROM events_v2 WHERE id = $1`, pending.IDs[0]); got != hard.Modifier+string(hard.Value) {
		t.Errorf("came out as %s", got)
	}
	if !rig.One[bool](r, `SELECT delay_until - enqueued_at = interval '1 hour' FROM events_v2 WHERE id = $1`, pending.IDs[1]) {
		t.Error("the delay is not an hour")
	}
}

func TestFailedPublishNeverFailsTheEmit(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	r.Emit(r.Event(`1`), r.Event(`2`))
	// The second emit does not even try: the notifier is known to be down.
	r.Emit(r.Event(`3`))
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 3 {
		t.Errorf("%d rows have a pending notification, want 3", n)
	}
	r.Notifier.Inject(memnotify.Faults{})
	relay := r.Relay(maintenance.RelayConfig{})
	done, err := relay.Pass(testenv.Context(t))
	if err != nil || done.Pending != 3 {
		t.Errorf("the relay published %+v, %v", done, err)
	}
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
}

func TestHandlerEmitsChildren(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		if string(run.Value) == `"parent"` {
			_, err := r.Queue.Emit(ctx, r.Event(`"child"`))
			return err
		}
		return nil
	}, rig.Quick())
	r.Start(worker.Config{})
	r.Emit(r.Event(`"parent"`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 2)
}
