package model_test

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"pgregory.net/rapid"

	"eventsv2/eventqueue/memstore"
)

const (
	eventsSQL = `
SELECT id, canvas_id, module, name, modifier, value, retries, delay_until, enqueued_at, locked_at, attempts, notified_at
FROM events_v2
ORDER BY id`

	logSQL = `
SELECT id, canvas_id, module, name, modifier, value, status::text, retries, attempts, last_error, enqueued_at, created_at
FROM event_log
ORDER BY id`

	rulesSQL = `
SELECT id, rule_type::text, canvas_id, event_space, handler_name, created_at
FROM scheduling_rules
ORDER BY id`
)

// compare compares all rows of both databases.
func (w *world) compare(t rapid.TB) {
	t.Helper()
	tried.steps.Add(1)
	batch := &pgx.Batch{}
	batch.Queue(eventsSQL)
	batch.Queue(logSQL)
	batch.Queue(rulesSQL)
	results := w.pool.SendBatch(w.ctx, batch)
	events := read(t, results, scanEvent)
	log := read(t, results, scanLog)
	rules := read(t, results, scanRule)
	if err := results.Close(); err != nil {
		t.Fatalf("read the tables: %v", err)
	}
	sameRows(t, "events_v2", events, w.mem.Events())
	sameRows(t, "event_log", log, w.mem.Log())
	sameRows(t, "scheduling_rules", rules, w.mem.Rules())
}

func read[T any](t rapid.TB, results pgx.BatchResults, scan pgx.RowToFunc[T]) []T {
	t.Helper()
	rows, err := results.Query()
	if err != nil {
		t.Fatalf("read a table: %v", err)
	}
	all, err := pgx.CollectRows(rows, scan)
	if err != nil {
		t.Fatalf("read a table: %v", err)
	}
	return all
}

func sameRows[T comparable](t rapid.TB, table string, pg, mem []T) {
	t.Helper()
	equal := len(pg) == len(mem)
	for i := 0; equal && i < len(pg); i++ {
		equal = pg[i] == mem[i]
	}
	if !equal {
		t.Fatalf("%s differs (-Postgres +model):\n%s", table, cmp.Diff(pg, mem))
	}
}

func scanEvent(row pgx.CollectableRow) (r memstore.Row, err error) {
	err = row.Scan(&r.ID, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Value, &r.Retries, &r.DelayUntil,
		&r.EnqueuedAt, (*zeronull.Timestamptz)(&r.LockedAt), &r.Attempts, (*zeronull.Timestamptz)(&r.NotifiedAt))
	inUTC(&r.DelayUntil, &r.EnqueuedAt, &r.LockedAt, &r.NotifiedAt)
	return r, err
}

func scanLog(row pgx.CollectableRow) (r memstore.LogRow, err error) {
	err = row.Scan(&r.ID, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Value, &r.Status, &r.Retries,
		&r.Attempts, (*zeronull.Text)(&r.LastError), &r.EnqueuedAt, &r.CreatedAt)
	inUTC(&r.EnqueuedAt, &r.CreatedAt)
	return r, err
}

func scanRule(row pgx.CollectableRow) (r memstore.RuleRow, err error) {
	err = row.Scan(&r.ID, &r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.CreatedAt)
	inUTC(&r.CreatedAt)
	return r, err
}

// inUTC gives times the one form in which they can be compared by ==.
func inUTC(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.UTC()
		}
	}
}
