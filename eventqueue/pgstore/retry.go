package pgstore

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// An event leaves event_log and enters events_v2 in one statement (I1). It keeps
// its id, and its attempts, so that no fence token repeats (I5). Its
// notification is pending, and the commit wakes the relay. A second retry waits for
// the row and finds it gone (I14). A unique key that the event still reserves stays
// reserved until its next completion, and for its time from then on. In its ordering
// group the event has the place of its id.
var retrySQL = `
WITH asked AS (
    SELECT DISTINCT id FROM unnest($1::bigint[]) AS asked (id)
), failed AS (
    SELECT l.id, ` + otherContentSQL("l", "$7", "$8") + ` AS outdated
    FROM event_log l
    WHERE l.id IN (SELECT id FROM asked) AND l.status IN ('FAILED', 'CANCELLED')
    ORDER BY l.id
    FOR UPDATE
), taken AS (
    DELETE FROM event_log l USING failed WHERE l.id = failed.id AND NOT failed.outdated
    RETURNING l.id, l.canvas_id, l.module, l.name, l.modifier, l.value, l.attempts, l.enqueued_at, l.ordering_key, l.attributes, l.parent_id, l.unique_key
), moved AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, retries, attempts, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key, attributes, parent_id, unique_key, by_sql)
    SELECT id, canvas_id, module, name, modifier, coalesce($3, value), 0, attempts,
        clock_timestamp() + coalesce($5::interval, greatest($6::timestamptz - clock_timestamp(), interval '0')), enqueued_at, NULL,
        coalesce((SELECT u.unique_seconds FROM unique_expiries u WHERE u.event_id = taken.id), 0),
        CASE WHEN ordering_key IS NULL THEN 0 ELSE 3 END, coalesce(ordering_key, ''), CASE WHEN $4::text IS NULL THEN attributes ELSE nullif($4, '')::jsonb END, parent_id, unique_key, NULL
    FROM taken
    ORDER BY id
    RETURNING id
), woken AS (
    SELECT events_v2_notify($2, '') WHERE EXISTS (SELECT FROM moved)
)
SELECT asked.id,
    CASE
        WHEN moved.id IS NOT NULL THEN 'retried'
        WHEN failed.outdated THEN 'outdated'
        WHEN l.status = 'COMPLETED' THEN 'completed'
        WHEN e.id IS NOT NULL OR l.id IS NOT NULL THEN 'queued'
        ELSE 'unknown'
    END
FROM asked
LEFT JOIN moved ON moved.id = asked.id
LEFT JOIN failed ON failed.id = asked.id
LEFT JOIN event_log l ON l.id = asked.id
LEFT JOIN events_v2 e ON e.id = asked.id
LEFT JOIN woken ON true
ORDER BY asked.id`

// Retry implements operate.ChangeStore, in one statement, or around the rows that the database refuses
// to write (I15).
func (s *Store) Retry(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) ([]operate.Changed, error) {
	arguments := append([]any{s.channel(pendingChannel)}, editArguments(edit)...)
	return s.changeLogged(ctx, "retry", ids, retrySQL, append(arguments, contentArguments(edit)...)...)
}

// An entry that another transaction writes, such as another retry, is waited for.
const deleteLoggedSQL = `
DELETE FROM event_log WHERE id = ANY (ARRAY(
    SELECT id FROM event_log WHERE id = ANY ($1::bigint[]) AND status IN ('FAILED', 'CANCELLED') ORDER BY id FOR UPDATE))
RETURNING id, 'changed'`

// DeleteLogged implements operate.ChangeStore, in one statement, or around the rows that the database
// refuses to delete (I15).
func (s *Store) DeleteLogged(ctx context.Context, ids []eventqueue.EventID) ([]operate.Changed, error) {
	return s.changeLogged(ctx, "delete", ids, deleteLoggedSQL)
}

const lastLoggedSQL = `SELECT coalesce(max(id), 0) FROM event_log`

// LastLogged implements operate.ChangeStore: it bounds a walk over event_log that does
// not chase what comes in meanwhile.
func (s *Store) LastLogged(ctx context.Context) (last eventqueue.EventID, err error) {
	err = s.pool.QueryRow(ctx, lastLoggedSQL).Scan(&last)
	return last, err
}

const wakeRelaySQL = `SELECT events_v2_notify($1, '')`

// WakeRelay has the relays publish pending notifications now, without waiting for their
// timer.
func (s *Store) WakeRelay(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, wakeRelaySQL, s.channel(pendingChannel))
	return err
}
