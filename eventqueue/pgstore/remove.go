package pgstore

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/mayrun"
	"eventsv2/internal/sqlstate"
)

// removeSQL decides after lockChanged has waited for the claims and completions that are under way.
// A lock that has expired is none (I4); without the row its holder's token is good for nothing (I5).
//
// A row leaves events_v2 and enters event_log in one statement (I1). A unique key stays reserved
// for as long as after a completion. With a cancellation, the runs of the others end; see endingSQL.
var removeSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), free AS MATERIALIZED (
    SELECT id, canvas_id, module, name, locked_at, claim_id, attempts
    FROM events_v2
    WHERE id = ANY ($1::bigint[])
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), removed AS (
    DELETE FROM events_v2 e USING clock
    WHERE e.id = ANY (ARRAY(SELECT id FROM free)) AND ` + mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for") + `
    RETURNING e.*
), logged AS (
    INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at, ordering_key, attributes, parent_id, reason, actor, unique_key)
    SELECT id, canvas_id, module, name, modifier, value, 'CANCELLED', retries, attempts, enqueued_at, nullif(ordering_key, ''), attributes, parent_id, nullif($3, ''), nullif($4, ''), unique_key
    FROM removed
    WHERE $2::boolean
    -- A row that was put back by hand under its old id is logged all the same.
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, value = excluded.value, retries = excluded.retries,
        attempts = excluded.attempts, last_error = NULL, created_at = excluded.created_at,
        ordering_key = excluded.ordering_key, attributes = excluded.attributes, parent_id = excluded.parent_id,
        reason = excluded.reason, actor = excluded.actor, unique_key = excluded.unique_key, result = NULL, run_log = NULL, duration = NULL, worker = NULL
), stamped AS (
    INSERT INTO unique_expiries (event_id, unique_seconds, expires_at)
    SELECT id, unique_seconds, clock.now + unique_seconds * interval '1 second'
    FROM removed CROSS JOIN clock
    WHERE unique_seconds > 0
    ON CONFLICT (event_id) DO UPDATE SET unique_seconds = excluded.unique_seconds, expires_at = excluded.expires_at
), ` + endingSQL +
	strings.Replace(changedSQL("removed", "woken"), `'running'`,
		`CASE WHEN NOT $2::boolean THEN 'running' WHEN asked.id IN (SELECT id FROM ending) THEN 'ending' ELSE '`+againSQL+`' END`, 1)

// longestSQL bounds how long a lock is said to be valid that a row has that was written by hand.
const longestSQL = `interval '876000 hours'`

// changedSQL answers for the ids of a change: done has those that were changed, and free the rows
// that this transaction has locked. What is not in it and yet in events_v2 is locked by another one at
// the moment. also is evaluated beside it, and may be empty.
func changedSQL(done, also string) string {
	if also != "" {
		also = "\nLEFT JOIN " + also + " ON true"
	}
	return `
SELECT asked.id,
    CASE
        WHEN ` + done + `.id IS NOT NULL THEN 'changed'
        WHEN free.id IS NOT NULL THEN 'running'
        WHEN e.id IS NOT NULL THEN 'busy'
        WHEN l.status IS NOT NULL THEN lower(l.status::text)
        ELSE 'unknown'
    END,
    CASE WHEN ` + done + `.id IS NULL AND free.id IS NOT NULL THEN least(free.locked_at + clock.valid_for - clock.now, ` + longestSQL + `) END,
    coalesce(free.canvas_id, '00000000-0000-0000-0000-000000000000'), coalesce(free.module, ''), coalesce(free.name, '')
FROM clock CROSS JOIN (SELECT DISTINCT id FROM unnest($1::bigint[]) AS asked (id)) AS asked
LEFT JOIN ` + done + ` ON ` + done + `.id = asked.id
LEFT JOIN free ON free.id = asked.id
LEFT JOIN events_v2 e ON e.id = asked.id
LEFT JOIN event_log l ON l.id = asked.id` + also + `
ORDER BY asked.id`
}

// advanceGoneSQL advances the groups of those of the events that have left the queue.
const advanceGoneSQL = `
SELECT id, canvas_id, module, name, modifier FROM events_v2_advance(ARRAY(
    SELECT g.event_id FROM event_groups g WHERE g.event_id = ANY ($1::bigint[])
      AND NOT EXISTS (SELECT FROM events_v2 e WHERE e.id = g.event_id)), NULL, NULL, NULL)`

// Remove implements operate.ChangeStore, in one round trip and one transaction. If the database
// refuses that, the events are removed around the rows that it refuses, and then the groups advance
// around such rows (I15).
func (s *Store) Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *operate.Cancellation) (results []operate.Changed, advanced []eventqueue.Event, err error) {
	var reason, actor string
	if cancellation != nil {
		reason, actor = cancellation.Reason, cancellation.Actor
	}
	change := func(ids []eventqueue.EventID, results *[]operate.Changed) []query {
		return []query{
			{forms: lockChanged, arguments: []any{int64s(ids)}, read: discard},
			{forms: forms{waits: removeSQL, skips: removeSQL}, arguments: []any{int64s(ids), cancellation != nil, reason, actor, s.channel(directChannelPrefix)}, read: collect(results, scanChanged)},
		}
	}
	action := "delete"
	if cancellation != nil {
		action = "cancel"
	}
	err = s.changeEvents(ctx, auditedChange(action, ids, &results), append(change(ids, &results), query{
		forms: forms{waits: advanceGoneSQL, skips: advanceGoneSQL}, arguments: []any{int64s(ids)}, read: collect(&advanced, scanAdvanced),
	}))
	if !sqlstate.Refused(err) {
		return results, advanced, err
	}
	results, err = changeAround(ids, func(ids []eventqueue.EventID) (results []operate.Changed, err error) {
		err = s.changeEvents(ctx, auditedChange(action, ids, &results), change(ids, &results))
		return results, err
	})
	if gone := operate.DoneIDs(results); len(gone) > 0 {
		var advanceErr error
		if advanced, advanceErr = s.advanceWritten(ctx, &advancing{left: gone}); err == nil {
			err = advanceErr
		}
	}
	return results, advanced, err
}

func scanChanged(row pgx.CollectableRow) (c operate.Changed, err error) {
	var remaining *time.Duration
	err = row.Scan(&c.ID, &c.Result, &remaining, (*[16]byte)(&c.Scope.Canvas), &c.Scope.Module, &c.Scope.Name)
	if remaining != nil {
		c.LockRemaining = *remaining
	}
	if c.Result == againSQL {
		c.Result, c.Repeated = operate.ChangeEnding, true
	}
	return c, err
}

// discard reads an answer that is not needed.
func discard(rows pgx.Rows) error {
	rows.Close()
	return rows.Err()
}
