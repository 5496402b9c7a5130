package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

// An event leaves event_log and enters events_v2 in one statement (I1). It keeps
// its id, and its attempts, so that no fence token repeats (I5). Its
// notification is pending, and the commit wakes the relay. A second retry waits for
// the row and finds it gone (I14). A unique key that the event still reserves stays
// reserved until its next completion, and for its time from then on. In its ordering
// group the event has the place of its id.
const retrySQL = `
WITH asked AS (
    SELECT DISTINCT id FROM unnest($1::bigint[]) AS asked (id)
), failed AS (
    SELECT l.id
    FROM event_log l
    WHERE l.id IN (SELECT id FROM asked) AND l.status = 'FAILED'
    ORDER BY l.id
    FOR UPDATE
), taken AS (
    DELETE FROM event_log l USING failed WHERE l.id = failed.id
    RETURNING l.id, l.canvas_id, l.module, l.name, l.modifier, l.value, l.attempts, l.enqueued_at, l.ordering_key
), moved AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, retries, attempts, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key)
    SELECT id, canvas_id, module, name, modifier, value, 0, attempts, clock_timestamp(), enqueued_at, NULL,
        coalesce((SELECT u.unique_seconds FROM unique_expiries u WHERE u.event_id = taken.id), 0),
        CASE WHEN ordering_key IS NULL THEN 0 ELSE 3 END, coalesce(ordering_key, '')
    FROM taken
    ORDER BY id
    RETURNING id
), woken AS (
    SELECT pg_notify('` + pendingChannel + `', '') WHERE EXISTS (SELECT FROM moved)
)
SELECT asked.id,
    CASE
        WHEN moved.id IS NOT NULL THEN 'retried'
        WHEN l.status = 'COMPLETED' THEN 'completed'
        WHEN e.id IS NOT NULL OR l.id IS NOT NULL THEN 'queued'
        ELSE 'unknown'
    END
FROM asked
LEFT JOIN moved ON moved.id = asked.id
LEFT JOIN event_log l ON l.id = asked.id
LEFT JOIN events_v2 e ON e.id = asked.id
LEFT JOIN woken ON true
ORDER BY asked.id`

// Retry implements control.RetryStore, in one statement.
func (s *Store) Retry(ctx context.Context, ids []eventqueue.EventID) ([]control.Retried, error) {
	rows, err := s.pool.Query(ctx, retrySQL, int64s(ids))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r control.Retried, err error) {
		err = row.Scan(&r.ID, &r.Result)
		return r, err
	})
}

const lastLoggedSQL = `SELECT coalesce(max(id), 0) FROM event_log`

// LastLogged implements control.RetryStore: it bounds a walk over event_log that does
// not chase what comes in meanwhile.
func (s *Store) LastLogged(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.pool.QueryRow(ctx, lastLoggedSQL).Scan(&last)
	return last, err
}

const failedIDsSQL = `
SELECT id
FROM event_log
WHERE canvas_id = $1 AND module = $2 AND name = $3 AND status = 'FAILED' AND id > $4 AND id <= $5
ORDER BY id
LIMIT $6`

// FailedIDs implements control.RetryStore.
func (s *Store) FailedIDs(ctx context.Context, scope eventqueue.Scope, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, error) {
	return queryIDs(ctx, s.pool, failedIDsSQL, [16]byte(scope.Canvas), scope.Module, scope.Name, after, last, limit)
}

const wakeRelaySQL = `SELECT pg_notify('` + pendingChannel + `', '')`

// WakeRelay has the relays publish pending notifications now, without waiting for their
// timer.
func (s *Store) WakeRelay(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, wakeRelaySQL)
	return err
}
