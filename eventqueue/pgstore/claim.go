package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The claim answers for all ids at one moment of the database's clock and takes
// the locks that may be taken:
//
//   - barrier reads nothing. Its FOR KEY SHARE takes a table lock (ROW SHARE) on
//     scheduling_rules before the statement takes its snapshot. Adding a rule
//     takes a conflicting one, so a claim has either committed before the rule
//     is added, or sees it (I7).
//   - seen holds the facts, from the snapshot.
//   - free locks, by id, the rows that may run, and looks at their newest
//     version once more; it skips those that somebody is writing.
//   - claimed writes the lock and the token. Taking over an expired lock counts
//     as a failed attempt (I9).
const claimSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), barrier AS MATERIALIZED (
    SELECT 1 FROM scheduling_rules WHERE false FOR KEY SHARE
), seen AS MATERIALIZED (
    SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until, e.locked_at,
        (SELECT max(r.rule_type) FROM scheduling_rules r
         WHERE r.canvas_id = e.canvas_id AND r.event_space = e.module AND r.handler_name = e.name)::text AS rule,
        (e.module, e.name, e.modifier) IN (SELECT * FROM unnest($3::text[], $4::text[], $5::text[]))
            OR (e.canvas_id, e.module, e.name, e.modifier) IN
                (SELECT * FROM unnest($6::uuid[], $7::text[], $8::text[], $9::text[])) AS known
    FROM events_v2 e
    WHERE e.id = ANY ($1::bigint[])
), free AS MATERIALIZED (
    SELECT e.id
    FROM events_v2 e, clock
    WHERE e.id IN (SELECT id FROM seen WHERE rule IS NULL AND known)
      AND e.delay_until <= clock.now
      AND (e.locked_at IS NULL OR e.locked_at <= clock.now - $2::interval)
    ORDER BY e.id
    FOR UPDATE OF e SKIP LOCKED
), claimed AS (
    UPDATE events_v2 e
    SET locked_at = clock.now, attempts = e.attempts + 1, retries = e.retries + (e.locked_at IS NOT NULL)::int
    FROM free, clock
    WHERE e.id = free.id
    RETURNING e.id, e.attempts, e.retries, e.enqueued_at, e.value
)
SELECT seen.id, seen.canvas_id, seen.module, seen.name, seen.modifier, seen.delay_until, seen.locked_at,
    seen.rule, seen.known, clock.now,
    claimed.attempts, claimed.retries, claimed.enqueued_at, claimed.value
FROM clock CROSS JOIN seen LEFT JOIN claimed USING (id) LEFT JOIN barrier ON true`

// Claim implements eventqueue.ClaimStore. All rows are read before it returns:
// only then has the claim committed.
func (s *Store) Claim(ctx context.Context, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) ([]eventqueue.Found, error) {
	return ClaimIn(ctx, s.pool, ids, known, lockTimeout)
}

// ClaimIn is Claim within a transaction: the claims are committed with it. Tests
// hold one open with it.
func ClaimIn(ctx context.Context, db eventqueue.DB, ids []eventqueue.EventID, known eventqueue.Known, lockTimeout time.Duration) ([]eventqueue.Found, error) {
	args := append([]any{int64s(ids), lockTimeout}, knownArgs(known)...)
	rows, err := db.Query(ctx, claimSQL, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (eventqueue.Found, error) {
		return scanFound(row, lockTimeout)
	})
}

func knownArgs(known eventqueue.Known) []any {
	modules, names, modifiers := handlerColumns(known.Everywhere)
	canvases := make([][16]byte, len(known.OnCanvas))
	keys := make([]eventqueue.HandlerKey, len(known.OnCanvas))
	for i, on := range known.OnCanvas {
		canvases[i], keys[i] = on.Canvas, on.Key
	}
	canvasModules, canvasNames, canvasModifiers := handlerColumns(keys)
	return []any{modules, names, modifiers, canvases, canvasModules, canvasNames, canvasModifiers}
}

func handlerColumns(keys []eventqueue.HandlerKey) (modules, names, modifiers []string) {
	modules, names, modifiers = make([]string, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		modules[i], names[i], modifiers[i] = key.Module, key.Name, key.Modifier
	}
	return modules, names, modifiers
}

func scanFound(row pgx.CollectableRow, lockTimeout time.Duration) (f eventqueue.Found, err error) {
	var (
		e                 = &f.Event
		lockedAt          *time.Time
		rule              *string
		now               time.Time
		attempts, retries *int32
		enqueuedAt        *time.Time
		value             []byte
	)
	if err := row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.DelayUntil, &lockedAt,
		&rule, &f.Facts.Known, &now, &attempts, &retries, &enqueuedAt, &value); err != nil {
		return f, err
	}
	f.Facts.Present = true
	f.Facts.Rule = ruleFact(rule)
	f.Facts.Delay = e.DelayUntil.Sub(now)
	if lockedAt != nil {
		f.Facts.LockRemaining = lockedAt.Add(lockTimeout).Sub(now)
		f.Facts.Lock = machine.LockStale
		if f.Facts.LockRemaining > 0 {
			f.Facts.Lock = machine.LockHeld
		}
	}
	if attempts != nil {
		f.Facts.Claimed = true
		f.Attempt = *attempts
		e.Retries, e.EnqueuedAt, e.Value = int(*retries), *enqueuedAt, value
	}
	return f, nil
}

func ruleFact(rule *string) machine.Rule {
	switch {
	case rule == nil:
		return machine.NoRule
	case *rule == string(eventqueue.BlockRule):
		return machine.BlockRule
	default:
		return machine.PauseRule
	}
}
