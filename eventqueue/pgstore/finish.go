package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The fence (I5): the token is the claim's, and the lock was not given back
// under the same token. It stands in the three statements below.

const deleteSQL = `
DELETE FROM events_v2 e
USING unnest($1::bigint[], $2::int[]) AS mine (id, attempts)
WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL
RETURNING e.id`

// An event leaves events_v2 and enters event_log in one statement (I1, I9). A
// status of NULL keeps no history.
const deleteAndLogSQL = `
WITH ended AS (
    DELETE FROM events_v2 e
    USING unnest($1::bigint[], $2::int[], $3::text[], $4::text[]) AS mine (id, attempts, status, last_error)
    WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL
    RETURNING e.*, mine.status, mine.last_error
), logged AS (
    INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
    SELECT id, canvas_id, module, name, modifier, value, status::event_log_status, retries, attempts, last_error, enqueued_at
    FROM ended
    WHERE status IS NOT NULL
)
SELECT id FROM ended`

// The notification of an event that is due within MaxRequeue is requeued by the
// worker and rings at its new time; beyond that one is owed. Without a new delay
// the event is as it was before the claim.
const rescheduleSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
)
UPDATE events_v2 e
SET locked_at = NULL,
    retries = e.retries + mine.failed::int,
    delay_until = CASE WHEN mine.delay IS NULL THEN e.delay_until ELSE clock.now + mine.delay END,
    notified_at = CASE WHEN mine.delay IS NULL THEN e.notified_at
                       WHEN mine.delay <= $5::interval THEN clock.now + mine.delay END
FROM clock, unnest($1::bigint[], $2::int[], $3::boolean[], $4::interval[]) AS mine (id, attempts, failed, delay)
WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL
RETURNING e.id`

// Finish implements eventqueue.ClaimStore: at most two statements, in one round
// trip and one transaction.
func (s *Store) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) ([]eventqueue.EventID, error) {
	var deleted, rescheduled []eventqueue.End
	for _, end := range ends {
		switch end.Label {
		case machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood:
			deleted = append(deleted, end)
		case machine.RetryAllowed, machine.Snoozed, machine.Released:
			rescheduled = append(rescheduled, end)
		default:
			panic("pgstore: an event cannot end with " + string(end.Label))
		}
	}
	var statements []*pgx.QueuedQuery
	if len(deleted) > 0 {
		statements = append(statements, deletion(deleted, keep))
	}
	if len(rescheduled) > 0 {
		statements = append(statements, rescheduling(rescheduled))
	}
	db := s.in(in)
	if len(statements) == 1 {
		return queryIDs(ctx, db, statements[0].SQL, statements[0].Arguments...)
	}
	return queryIDsBatch(ctx, db, statements)
}

func queryIDsBatch(ctx context.Context, db eventqueue.DB, statements []*pgx.QueuedQuery) ([]eventqueue.EventID, error) {
	batch := &pgx.Batch{QueuedQueries: statements}
	results := db.SendBatch(ctx, batch)
	var ids []eventqueue.EventID
	for range statements {
		rows, err := results.Query()
		if err == nil {
			ids, err = pgx.AppendRows(ids, rows, pgx.RowTo[eventqueue.EventID])
		}
		if err != nil {
			_ = results.Close() // the first error says what went wrong
			return nil, err
		}
	}
	return ids, results.Close()
}

func claimColumns(ends []eventqueue.End) (ids []int64, attempts []int32) {
	ids, attempts = make([]int64, len(ends)), make([]int32, len(ends))
	for i, end := range ends {
		ids[i], attempts[i] = int64(end.Event), end.Attempt
	}
	return ids, attempts
}

func deletion(ends []eventqueue.End, keep bool) *pgx.QueuedQuery {
	ids, attempts := claimColumns(ends)
	statuses, lastErrors := make([]*string, len(ends)), make([]*string, len(ends))
	logs := false
	for i := range ends {
		switch {
		case ends[i].Label != machine.ExecutesToCompletion:
			statuses[i], lastErrors[i] = new("FAILED"), &ends[i].LastError
			logs = true
		case keep:
			statuses[i] = new("COMPLETED")
			logs = true
		}
	}
	if !logs {
		return &pgx.QueuedQuery{SQL: deleteSQL, Arguments: []any{ids, attempts}}
	}
	return &pgx.QueuedQuery{SQL: deleteAndLogSQL, Arguments: []any{ids, attempts, statuses, lastErrors}}
}

func rescheduling(ends []eventqueue.End) *pgx.QueuedQuery {
	ids, attempts := claimColumns(ends)
	failed, delays := make([]bool, len(ends)), make([]*time.Duration, len(ends))
	for i, end := range ends {
		failed[i] = end.Label == machine.RetryAllowed
		if end.Label != machine.Released {
			delays[i] = new((end.Delay + time.Microsecond - 1).Truncate(time.Microsecond))
		}
	}
	return &pgx.QueuedQuery{SQL: rescheduleSQL, Arguments: []any{ids, attempts, failed, delays, eventqueue.MaxRequeue}}
}

// A row that somebody is writing (a handler that completes its event, the relay)
// is not waited for: other claims must not expire meanwhile, and nobody else can
// claim it either. It is lost only when it is gone or has another token.
const renewSQL = `
WITH mine AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::int[]) AS mine (id, attempts)
), held AS MATERIALIZED (
    SELECT e.id
    FROM events_v2 e JOIN mine USING (id, attempts)
    WHERE e.locked_at IS NOT NULL
    ORDER BY e.id
    FOR UPDATE OF e SKIP LOCKED
), renewed AS (
    UPDATE events_v2 e SET locked_at = clock_timestamp()
    FROM held
    WHERE e.id = held.id
)
SELECT mine.id
FROM mine
WHERE NOT EXISTS (
    SELECT FROM events_v2 e
    WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL)`

// Renew implements eventqueue.ClaimStore.
func (s *Store) Renew(ctx context.Context, claims []eventqueue.Claim) ([]eventqueue.EventID, error) {
	ids, attempts := make([]int64, len(claims)), make([]int32, len(claims))
	for i, c := range claims {
		ids[i], attempts[i] = int64(c.Event), c.Attempt
	}
	return queryIDs(ctx, s.pool, renewSQL, ids, attempts)
}
