package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/mayrun"
)

// Before an operator changes events, the rows are locked, and the claims and ends that are under way are waited
// for, as in lockwait.go. The decision is a statement of its own, so that it sees
// what they have written: also that an event has left for event_log.
var lockChanged = forms{
	waits: `
SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) AND ` + lockWaitSQL + ` ORDER BY id FOR UPDATE`,
	skips: `
SELECT id FROM events_v2 WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE SKIP LOCKED`,
}

// clearLockSQL takes away the expired lock of an event e, if it has one.
var clearLockSQL = `SET locked_at = NULL, lost_run = false, ` + takeoverSQL + `,`

// free are the rows that this transaction has locked; what is not in it and yet in
// events_v2 is locked by another transaction at the moment.
//
// A lock that has expired is taken away as a claim would take it (I4, suspect.go), and without locked_at the holder's token is good for
// nothing (I5). attempts stays, so that no token repeats. A rule is not asked: who
// claims asks it (I7). A notification of the event is pending, and the commit wakes
// the relay, whose growing intervals begin anew with delay_until.
var requeueSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), asked AS (
    SELECT DISTINCT id FROM unnest($1::bigint[]) AS asked (id)
), free AS MATERIALIZED (
    SELECT id, canvas_id, module, name, modifier, locked_at
    FROM events_v2
    WHERE id = ANY ($1::bigint[])
    ORDER BY id
    FOR UPDATE SKIP LOCKED
), requeued AS (
    UPDATE events_v2 e
    ` + clearLockSQL + `
        delay_until = clock.now,
        priority = nullif(e.priority, 'low'), -- whoever requeues an event wants it to run
        notified_at = NULL
    FROM clock
    WHERE e.id = ANY (ARRAY(SELECT id FROM free)) AND ` + mayrun.UnlockedSQL("e.locked_at", "clock.now - clock.valid_for") + `
    RETURNING e.id
), woken AS (
    SELECT events_v2_notify($2, '') WHERE EXISTS (SELECT FROM requeued)
)
SELECT asked.id,
    CASE
        WHEN requeued.id IS NOT NULL THEN 'requeued'
        WHEN free.id IS NOT NULL THEN 'running'
        WHEN e.id IS NOT NULL THEN 'busy'
        WHEN l.status IS NOT NULL THEN lower(l.status::text)
        ELSE 'unknown'
    END,
    CASE WHEN requeued.id IS NULL AND free.id IS NOT NULL THEN least(free.locked_at + clock.valid_for - clock.now, ` + longestSQL + `) END,
    requeued.id IS NOT NULL AND free.locked_at IS NOT NULL,
    CASE WHEN requeued.id IS NOT NULL THEN ` + mayrun.RuleSQL("free") + ` END
FROM clock CROSS JOIN asked
LEFT JOIN requeued ON requeued.id = asked.id
LEFT JOIN free ON free.id = asked.id
LEFT JOIN events_v2 e ON e.id = asked.id
LEFT JOIN event_log l ON l.id = asked.id
LEFT JOIN woken ON true
ORDER BY asked.id`

// Requeue implements operate.ChangeStore, in one round trip and one transaction, or around the rows
// that the database refuses to write (I15).
func (s *Store) Requeue(ctx context.Context, ids []eventqueue.EventID) ([]operate.Changed, error) {
	return changeAround(ids, func(ids []eventqueue.EventID) (results []operate.Changed, err error) {
		err = s.changeEvents(ctx, auditedChange("run", ids, &results), []query{
			{forms: lockChanged, arguments: []any{int64s(ids)}, read: discard},
			{forms: forms{waits: requeueSQL, skips: requeueSQL}, arguments: []any{int64s(ids), s.channel(pendingChannel)}, read: collect(&results, scanRequeued)},
		})
		return results, err
	})
}

func scanRequeued(row pgx.CollectableRow) (r operate.Changed, err error) {
	var remaining *time.Duration
	var rule *string
	err = row.Scan(&r.ID, &r.Result, &remaining, &r.TakenOver, &rule)
	if remaining != nil {
		r.LockRemaining = *remaining
	}
	if rule != nil {
		r.Rule = operate.RuleType(*rule)
	}
	return r, err
}
