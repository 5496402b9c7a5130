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

	"github.com/jackc/pgx/v5/stdlib"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

func TestEmitManyKeepsTheOrderAndTheBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	events := make([]eventqueue.NewEvent, 2500)
	for i := range events {
		events[i] = r.event(fmt.Sprintf(`{ "n":%d, "s": "ü😀\t\\u0041", "x": 1e400}`, i))
	}
	ids := r.emit(events...)
	for i, id := range ids {
		if i > 0 && id <= ids[i-1] {
			t.Fatalf("id %d of event %d is not above %d", id, i, ids[i-1])
		}
		if i%250 == 0 {
			if got := one[string](r, `SELECT value FROM events_v2 WHERE id = $1`, id); got != string(events[i].Value) {
				t.Errorf("event %d holds %s", i, got)
			}
		}
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE retries = 0 AND locked_at IS NULL AND attempts = 0
		AND delay_until = enqueued_at AND notified_at IS NOT NULL`); n != len(events) {
		t.Errorf("%d of %d rows are as documented", n, len(events))
	}
	if n := r.notifier.Len(); n != len(events) {
		t.Errorf("%d notifications for %d events", n, len(events))
	}
}

func TestEmitRefusesBadInputAndWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	good := r.event(`1`)
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
		_, err := r.queue.EmitMany(testenv.Context(t), []eventqueue.NewEvent{good, c.event})
		var invalid *eventqueue.InvalidError
		if !errors.As(err, &invalid) || invalid.Index != 1 || invalid.Field != c.field || !strings.Contains(invalid.Problem, c.text) {
			t.Errorf("want event 1, %s … %s; got %v", c.field, c.text, err)
		}
	}
	if n := r.waiting(); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

func TestEmitAcceptsTheEdges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, v := range []string{`null`, `""`, `"\\u0000"`, `"\ud83d\ude00"`, ` {} `, `"` + strings.Repeat("x", 256<<10-2) + `"`} {
		id := r.emit(r.event(v))[0]
		if got := one[string](r, `SELECT value FROM events_v2 WHERE id = $1`, id); got != v {
			t.Errorf("%.20s came out as %.20s", v, got)
		}
	}
	past := r.event(`1`)
	past.DelayUntil = time.Now().Add(-time.Hour)
	id := r.emit(past)[0]
	if !one[bool](r, `SELECT delay_until = enqueued_at FROM events_v2 WHERE id = $1`, id) {
		t.Error("a delay_until that has passed does not mean now")
	}
}

func TestAUnitOfWorkNotifiesAfterItsCommitOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.exec(`CREATE TABLE mine (n int)`)
	err := r.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO mine VALUES (1)`); err != nil {
			return err
		}
		if _, err := tx.Emit(ctx, r.event(`1`), r.event(`2`)); err != nil {
			return err
		}
		if n := r.notifier.Len(); n != 0 {
			t.Errorf("%d notifications before the commit", n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, m := r.notifier.Len(), r.waiting(); n != 2 || m != 2 {
		t.Errorf("%d notifications and %d rows after the commit, want 2 and 2", n, m)
	}

	boom := errors.New("boom")
	err = r.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
		if _, err := tx.Emit(ctx, r.event(`3`)); err != nil {
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
		_ = r.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) error {
			_, _ = tx.Emit(ctx, r.event(`4`))
			panic("boom")
		})
	}()
	if n, m := r.notifier.Len(), r.waiting(); n != 2 || m != 2 {
		t.Errorf("%d notifications and %d rows after two rollbacks, want 2 and 2", n, m)
	}
}

func TestEmitInACallersTransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)

	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rolledBack, err := r.queue.EmitTx(ctx, tx, r.event(`1`))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := rolledBack.Notify(ctx); err != nil {
		t.Errorf("Notify after a rollback: %v", err)
	}
	if n, m := r.notifier.Len(), r.waiting(); n != 0 || m != 0 {
		t.Errorf("%d notifications and %d rows after a rollback", n, m)
	}

	if tx, err = r.pool.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	pending, err := r.queue.EmitTx(ctx, tx, r.event(`1`), r.event(`2`))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 2 {
		t.Errorf("%d rows are owed a notification after the commit, want 2", n)
	}
	for range 2 { // the second time there is nothing left to do
		if err := pending.Notify(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.notifier.Len(); n != 2 {
		t.Errorf("%d notifications, want 2", n)
	}
}

func TestEmitThroughDatabaseSQL(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	db := stdlib.OpenDBFromPool(r.pool)
	defer func() { _ = db.Close() }()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hard := r.event(`{"a": "quote \" comma , brace } back \\ ü"}`)
	hard.Modifier = `a "b", {c} \d NULL`
	later := r.event(`2`)
	later.Delay = time.Hour
	pending, err := r.queue.EmitSQL(ctx, tx, hard, later)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := one[string](r, `SELECT modifier || value FROM events_v2 WHERE id = $1`, pending.IDs[0]); got != hard.Modifier+string(hard.Value) {
		t.Errorf("came out as %s", got)
	}
	if !one[bool](r, `SELECT delay_until - enqueued_at = interval '1 hour' FROM events_v2 WHERE id = $1`, pending.IDs[1]) {
		t.Error("the delay is not an hour")
	}
}

func TestAFailedPublishNeverFailsTheEmit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.notifier.Inject(memnotify.Faults{Publish: func() error { return errors.New("down") }})
	r.emit(r.event(`1`), r.event(`2`))
	// The second emit does not even try: the broker is known to be down.
	r.emit(r.event(`3`))
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE notified_at IS NULL`); n != 3 {
		t.Errorf("%d rows are owed a notification, want 3", n)
	}
	r.notifier.Inject(memnotify.Faults{})
	relay := r.relay(eventqueue.RelayConfig{})
	done, err := relay.Pass(testenv.Context(t))
	if err != nil || done.Owed != 3 {
		t.Errorf("the relay published %+v, %v", done, err)
	}
	r.handle(func(context.Context, *eventqueue.Run) error { return nil }, quick())
	r.start(eventqueue.WorkerConfig{})
	r.outcomes.await(t, machine.ExecutesToCompletion, 3)
}

func TestEmitFromAHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handle(func(ctx context.Context, run *eventqueue.Run) error {
		if string(run.Value) == `"parent"` {
			_, err := r.queue.Emit(ctx, r.event(`"child"`))
			return err
		}
		return nil
	}, quick())
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`"parent"`))
	r.outcomes.await(t, machine.ExecutesToCompletion, 2)
}
