package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// The fence (I5) stands in mineSQL: the token is the claim's, and the lock was not
// given back under the same token. Rows that somebody is writing (a handler's own
// transaction, an operator) are left for another try, so that one of them keeps
// no other end waiting (I15).
const mineSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), held AS MATERIALIZED (
    SELECT e.id
    FROM events_v2 e JOIN unnest($1::bigint[], $2::int[]) AS mine (id, attempts) USING (id, attempts)
    WHERE e.locked_at IS NOT NULL
    ORDER BY e.id
    FOR UPDATE OF e SKIP LOCKED
)`

const deleteSQL = mineSQL + `, ended AS (
    DELETE FROM events_v2 e USING held WHERE e.id = held.id RETURNING e.id
)` + finishedSQL

// An event leaves events_v2 and enters event_log in one statement (I1, I9). A
// status of NULL keeps no history.
const deleteAndLogSQL = mineSQL + `, gone AS (
    DELETE FROM events_v2 e
    USING held, unnest($1::bigint[], $3::text[], $4::text[]) AS how (id, status, last_error)
    WHERE e.id = held.id AND how.id = e.id
    RETURNING e.*, how.status, how.last_error
), logged AS (
    INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
    SELECT id, canvas_id, module, name, modifier, value, status::event_log_status, retries, attempts, last_error, enqueued_at
    FROM gone
    WHERE status IS NOT NULL
    -- A row that somebody put back by hand under its old id ends all the same.
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, value = excluded.value, retries = excluded.retries,
        attempts = excluded.attempts, last_error = excluded.last_error, created_at = excluded.created_at
), ended AS (
    SELECT id FROM gone
)` + finishedSQL

// The notification of an event that is due within MaxRequeue is requeued by the
// worker and rings at its new time; beyond that one is owed. Without a new delay
// the event is as it was before the claim.
const rescheduleSQL = mineSQL + `, ended AS (
    UPDATE events_v2 e
    SET locked_at = NULL,
        retries = e.retries + how.failed::int,
        delay_until = CASE WHEN how.delay IS NULL THEN e.delay_until ELSE clock.now + how.delay END,
        notified_at = CASE WHEN how.delay IS NULL THEN e.notified_at
                           WHEN how.delay <= $5::interval THEN clock.now + how.delay END
    FROM clock, held, unnest($1::bigint[], $3::boolean[], $4::interval[]) AS how (id, failed, delay)
    WHERE e.id = held.id AND how.id = e.id
    RETURNING e.id
)` + finishedSQL

// finishedSQL answers for every claim: written, or lost, or neither when
// somebody is writing its row.
const finishedSQL = `
SELECT mine.id, ended.id IS NOT NULL AS written,
    ended.id IS NULL AND NOT EXISTS (
        SELECT FROM events_v2 e
        WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL) AS lost
FROM unnest($1::bigint[], $2::int[]) AS mine (id, attempts) LEFT JOIN ended USING (id)`

// Finish implements eventqueue.ClaimStore: at most two statements, in one round
// trip and one transaction.
func (s *Store) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) (eventqueue.Written, error) {
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
	batch := &pgx.Batch{}
	if len(deleted) > 0 {
		batch.QueuedQueries = append(batch.QueuedQueries, deletion(deleted, keep))
	}
	if len(rescheduled) > 0 {
		batch.QueuedQueries = append(batch.QueuedQueries, rescheduling(rescheduled))
	}
	return writeBatch(ctx, s.in(in), batch)
}

// answer is what a statement says of one claim.
type answer struct {
	ID            eventqueue.EventID
	Written, Lost bool
}

func writeBatch(ctx context.Context, db eventqueue.DB, batch *pgx.Batch) (written eventqueue.Written, err error) {
	results := db.SendBatch(ctx, batch)
	for range batch.Len() {
		rows, err := results.Query()
		var answers []answer
		if err == nil {
			answers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[answer])
		}
		if err != nil {
			_ = results.Close() // the first error says what went wrong
			return eventqueue.Written{}, err
		}
		for _, a := range answers {
			switch {
			case a.Written:
				written.Done = append(written.Done, a.ID)
			case a.Lost:
				written.Lost = append(written.Lost, a.ID)
			}
		}
	}
	return written, results.Close()
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
			delays[i] = new(end.Delay.Truncate(time.Microsecond) + time.Microsecond)
		}
	}
	return &pgx.QueuedQuery{SQL: rescheduleSQL, Arguments: []any{ids, attempts, failed, delays, eventqueue.MaxRequeue}}
}

const renewSQL = mineSQL + `, ended AS (
    UPDATE events_v2 e SET locked_at = clock.now
    FROM clock, held
    WHERE e.id = held.id
    RETURNING e.id
)` + finishedSQL

// Renew implements eventqueue.ClaimStore.
func (s *Store) Renew(ctx context.Context, claims []eventqueue.Claim) (eventqueue.Written, error) {
	ids, attempts := make([]int64, len(claims)), make([]int32, len(claims))
	for i, c := range claims {
		ids[i], attempts[i] = int64(c.Event), c.Attempt
	}
	batch := &pgx.Batch{}
	batch.Queue(renewSQL, ids, attempts)
	return writeBatch(ctx, s.pool, batch)
}
