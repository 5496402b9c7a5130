package model_test

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"pgregory.net/rapid"

	"eventsv2/eventqueue/memstore"
	"eventsv2/internal/attributes"
)

const (
	eventsSQL = `
SELECT id, canvas_id, module, name, modifier, value, retries, delay_until, enqueued_at, locked_at, attempts, notified_at, unique_seconds * interval '1 second',
    limited_attempt, group_state, ordering_key, snoozes, coalesce(claim_id - attempts, 0), begun, coalesce(suspect, 0), lost_run, coalesce(attributes::text, ''), coalesce(parent_id, 0)
FROM events_v2
ORDER BY id`

	logSQL = `
SELECT id, canvas_id, module, name, modifier, value, status::text, retries, attempts, last_error, enqueued_at, created_at, ordering_key, coalesce(attributes::text, ''), coalesce(parent_id, 0),
    coalesce(reason, ''), coalesce(actor, '')
FROM event_log
ORDER BY id`

	rulesSQL = `
SELECT id, rule_type::text, canvas_id, event_space, handler_name, created_at, reason, actor, until, modifier, prefix, coalesce(rate, 0), greatest(coalesce(released_to, 0), 0), released_at
FROM scheduling_rules
ORDER BY id`

	keysSQL     = `SELECT canvas_id, key, event_id FROM unique_keys ORDER BY canvas_id, key`
	attemptsSQL = `
SELECT event_id, attempt, canvas_id, started_at, duration, coalesce(worker, 0), error FROM event_attempts ORDER BY event_id, attempt`

	endsSQL = `SELECT event_id, unique_seconds * interval '1 second', expires_at FROM unique_expiries ORDER BY event_id`
)

// compare compares all rows of both databases.
func (w *world) compare(t rapid.TB) {
	t.Helper()
	tried.steps.Add(1)
	batch := &pgx.Batch{}
	batch.Queue(eventsSQL)
	batch.Queue(logSQL)
	batch.Queue(rulesSQL)
	batch.Queue(keysSQL)
	batch.Queue(endsSQL)
	batch.Queue(ratesSQL)
	batch.Queue(placesSQL)
	batch.Queue(attemptsSQL)
	batch.Queue(minuteRowsSQL)
	batch.Queue(hourRowsSQL)
	results := w.pool.SendBatch(w.ctx, batch)
	events := read(t, results, scanEvent)
	log := read(t, results, scanLog)
	rules := read(t, results, scanRule)
	keys := read(t, results, scanKey)
	ends := read(t, results, scanEnd)
	rates := read(t, results, scanRate)
	places := read(t, results, scanPlace)
	attempts := read(t, results, scanAttempt)
	minutes := read(t, results, scanMinute)
	hours := read(t, results, scanMinute)
	if err := results.Close(); err != nil {
		t.Fatalf("read the tables: %v", err)
	}
	sameRows(t, "events_v2", events, w.mem.Events())
	sameRows(t, "event_log", log, w.mem.Log())
	sameRows(t, "scheduling_rules", rules, w.mem.Rules())
	sameRows(t, "unique_keys", keys, w.mem.Keys())
	sameRows(t, "unique_expiries", ends, w.mem.Expiries())
	sameRows(t, "rate_limits", rates, w.mem.Rates())
	sameRows(t, "event_groups", places, w.mem.Places())
	sameRows(t, "event_attempts", attempts, w.mem.Attempts())
	sameRows(t, "event_minutes", minutes, minuteRowsOf(w.mem.MinuteRows()))
	sameRows(t, "event_hours", hours, minuteRowsOf(w.mem.HourRows()))
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
	var text []byte
	err = row.Scan(&r.ID, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Value, &r.Retries, &r.DelayUntil,
		&r.EnqueuedAt, (*zeronull.Timestamptz)(&r.LockedAt), &r.Attempts, (*zeronull.Timestamptz)(&r.NotifiedAt), &r.UniqueFor, &r.LimitedAttempt, &r.Group, &r.OrderingKey, &r.Snoozes, &r.ClaimID, &r.Begun, &r.Company, &r.LostRun,
		&text, &r.Parent)
	r.Attributes = attributes.Encode(attributes.Decode(text)) // jsonb has a form of its own
	inUTC(&r.DelayUntil, &r.EnqueuedAt, &r.LockedAt, &r.NotifiedAt)
	return r, err
}

func scanLog(row pgx.CollectableRow) (r memstore.LogRow, err error) {
	var text []byte
	err = row.Scan(&r.ID, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Value, &r.Status, &r.Retries,
		&r.Attempts, (*zeronull.Text)(&r.LastError), &r.EnqueuedAt, &r.CreatedAt, (*zeronull.Text)(&r.OrderingKey), &text, &r.Parent, &r.Reason, &r.Actor)
	r.Attributes = attributes.Encode(attributes.Decode(text))
	inUTC(&r.EnqueuedAt, &r.CreatedAt)
	return r, err
}

func scanRule(row pgx.CollectableRow) (r memstore.RuleRow, err error) {
	var until *time.Time
	err = row.Scan(&r.ID, &r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.CreatedAt, &r.Reason, &r.Actor, &until,
		&r.Modifier, &r.Prefix, &r.Rate, &r.ReleasedTo, (*zeronull.Timestamptz)(&r.ReleasedAt))
	if until != nil {
		r.Until = *until
	}
	inUTC(&r.CreatedAt, &r.Until, &r.ReleasedAt)
	return r, err
}

func scanKey(row pgx.CollectableRow) (r memstore.KeyRow, err error) {
	err = row.Scan((*[16]byte)(&r.Canvas), &r.Key, &r.Event)
	return r, err
}

func scanEnd(row pgx.CollectableRow) (r memstore.ExpiryRow, err error) {
	err = row.Scan(&r.Event, &r.UniqueFor, &r.ExpiresAt)
	inUTC(&r.ExpiresAt)
	return r, err
}

func scanAttempt(row pgx.CollectableRow) (r memstore.AttemptRow, err error) {
	err = row.Scan(&r.Event, &r.Attempt, (*[16]byte)(&r.Canvas), &r.StartedAt, &r.Duration, &r.Worker, &r.Error)
	inUTC(&r.StartedAt)
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
