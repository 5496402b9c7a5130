package pgstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// countEmits counts what SQL has emitted.
func (r *rig) countEmits() {
	r.t.Helper()
	for more := true; more; {
		var err error
		if more, err = r.store.CountEmits(testenv.Context(r.t)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) emittedIs(when string, want map[string]int) {
	r.t.Helper()
	got := map[string]int{}
	for _, name := range one[[]string](r, `SELECT coalesce(array_agg(DISTINCT name), '{}') FROM event_minutes`) {
		got[name] = one[int](r, `SELECT sum(emitted) FROM event_minutes WHERE name = $1`, name)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s emitted are %v, want %v", when, got, want)
	}
}

// TestEmitsBySQLAreCountedOnce, whichever way they take, and those that are rolled back not at all; what a program emits it counts itself.
func TestEmitsBySQLAreCountedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	if w := r.waitingNow(); w.Uncounted {
		t.Error("before the first event some are to be counted")
	}
	of := [16]byte(canvas)
	r.exec(`SELECT events_emit($1, 'M', 'called', '1') FROM generate_series(1, 3)`, of)
	r.exec(`SELECT events_emit($1, 'M', 'later', '1', delay => '1 day')`, of)
	r.exec(`SELECT events_emit($1, 'M', 'ordered', '1', ordering_key => 'k') FROM generate_series(1, 2)`, of)
	r.exec(`SELECT events_emit($1, 'M', 'unique', '1', unique_key => 'k') FROM generate_series(1, 5)`, of)
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1, 'M', 'inserted', '_', '1' FROM generate_series(1, 4)`, of)
	r.exec(`CREATE TABLE person (id bigint, tenant uuid)`)
	r.exec(`CREATE TRIGGER send_to_outbox AFTER INSERT OR DELETE ON person FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant', 'M')`)
	r.exec(`CREATE TRIGGER send_in_order AFTER DELETE ON person FOR EACH ROW EXECUTE FUNCTION send_to_outbox('tenant', 'M', 'ordering_key=id')`)
	r.exec(`INSERT INTO person SELECT n, $1::uuid FROM generate_series(1, 6) AS n`, of)
	r.exec(`DELETE FROM person WHERE id = 1`)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT events_emit($1, 'M', 'undone', '1')`, of); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*eventqueue.NewEvent){
		func(*eventqueue.NewEvent) {},
		func(e *eventqueue.NewEvent) { e.Delay = 24 * time.Hour },
		func(e *eventqueue.NewEvent) { e.OrderingKey = "of a program" },
		func(e *eventqueue.NewEvent) { e.UniqueKey = "of a program" },
	} {
		for _, mode := range []eventqueue.NotifyMode{eventqueue.NotifyModeSelf, eventqueue.NotifyModeRelay, eventqueue.NotifyModeLater} {
			e := event()
			change(&e)
			if _, err := r.store.Insert(ctx, nil, []eventqueue.NewEvent{e}, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.exec(`DELETE FROM events_v2 WHERE name = 'called'`) // before they are counted
	if w := r.waitingNow(); !w.Uncounted {
		t.Error("no event is to be counted")
	}
	r.exec(`DELETE FROM event_minutes`) // what is pending
	want := map[string]int{"called": 3, "later": 1, "ordered": 2, "unique": 1, "inserted": 4, "insert_person": 6, "delete_person": 2}
	r.countEmits()
	r.emittedIs("counted once,", want)
	r.countEmits()
	r.emittedIs("counted again,", want)
	if w := r.waitingNow(); w.Uncounted {
		t.Error("some are still to be counted")
	}
}

// TestEmitsAreCountedBySeveralRelays, each once, while others are emitted.
func TestEmitsAreCountedBySeveralRelays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for range 20 {
				if _, err := r.store.CountEmits(ctx); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 20 {
				if _, err := r.pool.Exec(ctx, `SELECT events_emit($1, 'M', 'a', '1') FROM generate_series(1, 50)`, [16]byte(canvas)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	r.countEmits()
	r.emittedIs("by three programs,", map[string]int{"a": 3000})
}
