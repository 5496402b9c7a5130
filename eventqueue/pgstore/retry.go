package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/refusal"
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
    RETURNING l.id, l.canvas_id, l.module, l.name, l.modifier, l.value, l.attempts, l.enqueued_at, l.ordering_key, l.attributes, l.parent_id
), moved AS (
    INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, retries, attempts, delay_until, enqueued_at, notified_at, unique_seconds, group_state, ordering_key, attributes, parent_id)
    SELECT id, canvas_id, module, name, modifier, coalesce($3, value), 0, attempts,
        clock_timestamp() + coalesce($5::interval, greatest($6::timestamptz - clock_timestamp(), interval '0')), enqueued_at, NULL,
        coalesce((SELECT u.unique_seconds FROM unique_expiries u WHERE u.event_id = taken.id), 0),
        CASE WHEN ordering_key IS NULL THEN 0 ELSE 3 END, coalesce(ordering_key, ''), CASE WHEN $4::text IS NULL THEN attributes ELSE nullif($4, '')::jsonb END, parent_id
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

// Retry implements operate.RetryStore, in one statement, or around the rows that the database refuses
// to write (I15).
func (s *Store) Retry(ctx context.Context, edit operate.Edit, ids []eventqueue.EventID) ([]operate.Retried, error) {
	idOf := func(r operate.Retried) eventqueue.EventID { return r.ID }
	refused := func(id eventqueue.EventID, err error) operate.Retried {
		return operate.Retried{ID: id, Result: operate.RetryRefused, Err: err}
	}
	return changeAround(ids, idOf, refused, func(ids []eventqueue.EventID) ([]operate.Retried, error) {
		var results []operate.Retried
		what := audited{action: "retry", ids: ids, changed: func() []eventqueue.EventID {
			return idsOf(results, idOf, func(r operate.Retried) bool { return r.Result == operate.RetryMoved })
		}}
		err := s.changeLogged(ctx, what, func(db eventqueue.DB) error {
			arguments := append([]any{int64s(ids), s.channel(pendingChannel)}, editArguments(edit)...)
			rows, err := db.Query(ctx, retrySQL, append(arguments, contentArguments(edit)...)...)
			if err != nil {
				return err
			}
			results, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (r operate.Retried, err error) {
				err = row.Scan(&r.ID, &r.Result)
				return r, err
			})
			return err
		})
		return results, err
	})
}

// An entry that somebody writes, such as another retry, is waited for.
const deleteLoggedSQL = `
DELETE FROM event_log WHERE id = ANY (ARRAY(
    SELECT id FROM event_log WHERE id = ANY ($1::bigint[]) AND status IN ('FAILED', 'CANCELLED') ORDER BY id FOR UPDATE))
RETURNING id`

// DeleteLogged implements operate.RetryStore, in one statement, or around the rows that the database
// refuses to delete (I15).
func (s *Store) DeleteLogged(ctx context.Context, ids []eventqueue.EventID) (deleted []eventqueue.EventID, err error) {
	alone, err := refusal.Halve(func(ids []eventqueue.EventID) error {
		var some []eventqueue.EventID
		what := audited{action: "delete", ids: ids, changed: func() []eventqueue.EventID { return some }}
		err := s.changeLogged(ctx, what, func(db eventqueue.DB) (err error) {
			some, err = queryIDs(ctx, db, deleteLoggedSQL, int64s(ids))
			return err
		})
		if err == nil {
			deleted = append(deleted, some...)
		}
		return err
	}, ids)
	if err != nil || len(alone) == 0 {
		return deleted, err
	}
	refused := &refusal.Error{}
	for _, r := range alone {
		refused.Rows = append(refused.Rows, refusal.Row{Event: r.Item, Err: r.Err})
	}
	return deleted, refused
}

const lastLoggedSQL = `SELECT coalesce(max(id), 0) FROM event_log`

// LastLogged implements operate.RetryStore: it bounds a walk over event_log that does
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
