package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// fenced makes a write of many claims, in the form that waits for rows which
// somebody is writing and in the one that skips them (see patience.go). It writes
// as ended, a CTE that returns ids, the rows for which heldSQL holds, and answers
// for the claims that were not written: they are lost, or somebody is writing
// their rows.
//
// The fence (I5): the token is the claim's, and the lock was not given back under
// the same token. A row that was written since the statement began is looked at
// once more, or left for another try. IS TRUE keeps the planner from making a
// join of the list of tokens.
//
// Where the claim has said at which place it put the row, no index is read; what
// is found there has to pass the fence like any other row.
func fenced(ended string) forms {
	const (
		clock = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), held AS (
    SELECT `
		lookUp = `(
        SELECT e.ctid FROM events_v2 e
        WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL`
		mine = ` AS version
    FROM unnest($1::bigint[], $2::int[], $3::tid[]) AS mine (id, attempts, place)`
		answer = `
SELECT mine.id, NOT EXISTS (
        SELECT FROM events_v2 e
        WHERE e.id = mine.id AND e.attempts = mine.attempts AND e.locked_at IS NOT NULL) AS lost
FROM unnest($1::bigint[], $2::int[]) AS mine (id, attempts)
WHERE (SELECT count(*) FROM ended) < cardinality($1::bigint[]) AND mine.id NOT IN (SELECT id FROM ended)`
	)
	return forms{
		waits: clock + "coalesce(mine.place, " + lookUp + "))" + mine + " WHERE " + patientSQL + "\n)" + ended + answer,
		skips: clock + lookUp + " FOR UPDATE SKIP LOCKED)" + mine + "\n)" + ended + answer,
	}
}

const heldSQL = `e.ctid = ANY (ARRAY(SELECT version FROM held)) AND e.locked_at IS NOT NULL
      AND ((e.id, e.attempts) IN (SELECT * FROM unnest($1::bigint[], $2::int[]))) IS TRUE`

var deleteEnded = fenced(`, ended AS (
    DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.id
)`)

// An event leaves events_v2 and enters event_log in one statement (I1, I9). A
// status of NULL keeps no history.
const deleteAndLogSQL = `, ended AS (
    DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.*
), logged AS (
    INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, ordering_key)
    SELECT id, canvas_id, module, name, modifier, value, status::event_log_status, retries, attempts, last_error, enqueued_at,
        nullif(ordering_key, '')
    FROM ended JOIN unnest($1::bigint[], $4::text[], $5::text[]) AS how (id, status, last_error) USING (id)
    WHERE status IS NOT NULL
    -- A row that somebody put back by hand under its old id ends all the same.
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, value = excluded.value, retries = excluded.retries,
        attempts = excluded.attempts, last_error = excluded.last_error, created_at = excluded.created_at,
        ordering_key = excluded.ordering_key
)`

var deleteAndLog = fenced(deleteAndLogSQL)

// deleteAndStamp is for batches with an event whose key holds beyond its end. An
// event that was retried by hand ends a second time.
var deleteAndStamp = fenced(deleteAndLogSQL + `, stamped AS (
    INSERT INTO unique_ends (event_id, unique_seconds, expires_at)
    SELECT id, unique_seconds, clock.now + unique_seconds * interval '1 second'
    FROM ended CROSS JOIN clock
    WHERE unique_seconds > 0
    ON CONFLICT (event_id) DO UPDATE SET unique_seconds = excluded.unique_seconds, expires_at = excluded.expires_at
)`)

// The notification of an event that is due within MaxRequeue is requeued by the
// worker and rings at its new time; beyond that one is owed. Without a new delay
// the event is as it was before the claim.
const (
	rescheduleSQL = `, ended AS (
    UPDATE events_v2 e
    SET locked_at = NULL,
        retries = e.retries + how.failed::int,
        delay_until = CASE WHEN how.delay IS NULL THEN e.delay_until`
	rescheduleDelaySQL = ` ELSE clock.now + how.delay END,
        notified_at = CASE WHEN how.delay IS NULL THEN e.notified_at`
	rescheduleBellSQL = ` WHEN how.delay <= $6::interval THEN clock.now + how.delay END`
	rescheduledSQL    = `
    WHERE ` + heldSQL + ` AND how.id = e.id
    RETURNING e.id
)`
	// tooLateSQL: the limit that puts the event off has been changed since it was asked
	// (see TakeLimited). Then the event is due at once.
	tooLateSQL = ` WHEN how.limited AND e.limited_attempt = -` + limitedAttemptSQL
)

var reschedule = fenced(rescheduleSQL + rescheduleDelaySQL + rescheduleBellSQL + `
    FROM clock, unnest($1::bigint[], $4::boolean[], $5::interval[]) AS how (id, failed, delay)` + rescheduledSQL)

// rescheduleLimited is for batches with an event that a rate limit puts off.
var rescheduleLimited = fenced(rescheduleSQL + tooLateSQL + ` THEN clock.now` + rescheduleDelaySQL + tooLateSQL + ` THEN NULL` + rescheduleBellSQL + `,
        limited_attempt = CASE WHEN how.limited THEN ` + limitedAttemptSQL + ` ELSE e.limited_attempt END
    FROM clock, unnest($1::bigint[], $4::boolean[], $5::interval[], $7::boolean[]) AS how (id, failed, delay, limited)` + rescheduledSQL)

// Finish implements eventqueue.ClaimStore: at most two statements, and one more for
// events in lines, in one round trip and one transaction. In a transaction of the
// caller's no turn is given: it would hold the line for as long as it is open.
func (s *Store) Finish(ctx context.Context, in eventqueue.DB, ends []eventqueue.End, keep bool) (_ eventqueue.Written, err error) {
	var deleted, rescheduled []eventqueue.End
	for _, end := range ends {
		switch end.Label {
		case machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood:
			deleted = append(deleted, end)
		case machine.RetryAllowed, machine.Snoozed, machine.Released, machine.OverLimit:
			rescheduled = append(rescheduled, end)
		default:
			panic("pgstore: an event cannot end with " + string(end.Label))
		}
	}
	var queries []query
	var deletions, updates eventqueue.Written
	if len(deleted) > 0 {
		queries = append(queries, deletion(&deletions, deleted, keep))
	}
	if len(rescheduled) > 0 {
		queries = append(queries, rescheduling(&updates, rescheduled))
	}
	var turns []eventqueue.Event
	if in == nil && slices.ContainsFunc(ends, func(end eventqueue.End) bool { return end.InLine }) {
		queries = append(queries, turnsAfter(&turns, ends))
	}
	if in == nil {
		err = s.patiently(ctx, queries)
	} else {
		err = within(ctx, in, queries)
	}
	if err != nil {
		return eventqueue.Written{}, err
	}
	return eventqueue.Written{
		Done:  append(deletions.Done, updates.Done...),
		Lost:  append(deletions.Lost, updates.Lost...),
		Turns: turns,
	}, nil
}

// fencedWrite is a fenced statement that sets written.
func fencedWrite(written *eventqueue.Written, sql forms, claims claimColumns, more ...any) query {
	ids := claims.ids
	return query{
		forms:     sql,
		arguments: append([]any{ids, claims.attempts, claims.places}, more...),
		read: func(rows pgx.Rows) error {
			left, err := pgx.CollectRows(rows, pgx.RowToStructByPos[unwritten])
			if err != nil {
				return err
			}
			*written = eventqueue.Written{Done: without(left, ids)}
			for _, claim := range left {
				if claim.Lost {
					written.Lost = append(written.Lost, claim.ID)
				}
			}
			return nil
		},
	}
}

// unwritten is what a fenced statement says of a claim that it has not written.
type unwritten struct {
	ID   eventqueue.EventID
	Lost bool
}

// without returns the ids that are not left.
func without(left []unwritten, ids []int64) []eventqueue.EventID {
	unwritten := make(map[int64]bool, len(left))
	for _, claim := range left {
		unwritten[int64(claim.ID)] = true
	}
	done := make([]eventqueue.EventID, 0, len(ids))
	for _, id := range ids {
		if !unwritten[id] {
			done = append(done, eventqueue.EventID(id))
		}
	}
	return done
}

// claimColumns are the columns of a list of claims.
type claimColumns struct {
	ids      []int64
	attempts []int32
	places   []pgtype.TID // none, or one for each
}

func columnsOf(ends []eventqueue.End) claimColumns {
	c := claimColumns{ids: make([]int64, len(ends)), attempts: make([]int32, len(ends)), places: make([]pgtype.TID, len(ends))}
	for i := range ends {
		c.ids[i], c.attempts[i], c.places[i] = int64(ends[i].Event), ends[i].Attempt, tidOf(ends[i].Place)
	}
	return c
}

// placeOf packs a row's place. No row has the offset 0.
func placeOf(tid pgtype.TID) eventqueue.Place {
	return eventqueue.Place(tid.BlockNumber)<<16 | eventqueue.Place(tid.OffsetNumber)
}

func tidOf(place eventqueue.Place) pgtype.TID {
	return pgtype.TID{BlockNumber: uint32(place >> 16), OffsetNumber: uint16(place), Valid: place != 0}
}

func deletion(written *eventqueue.Written, ends []eventqueue.End, keep bool) query {
	statuses, lastErrors := make([]*string, len(ends)), make([]*string, len(ends))
	logs, stamps := false, false
	for i := range ends {
		stamps = stamps || ends[i].Unique
		switch {
		case ends[i].Label != machine.ExecutesToCompletion:
			statuses[i], lastErrors[i] = new(string(eventqueue.LogFailed)), &ends[i].LastError
			logs = true
		case keep:
			statuses[i] = new(string(eventqueue.LogCompleted))
			logs = true
		}
	}
	if stamps {
		return fencedWrite(written, deleteAndStamp, columnsOf(ends), statuses, lastErrors)
	}
	if !logs {
		return fencedWrite(written, deleteEnded, columnsOf(ends))
	}
	return fencedWrite(written, deleteAndLog, columnsOf(ends), statuses, lastErrors)
}

func rescheduling(written *eventqueue.Written, ends []eventqueue.End) query {
	failed, delays := make([]bool, len(ends)), make([]*time.Duration, len(ends))
	limited, limits := make([]bool, len(ends)), false
	for i, end := range ends {
		failed[i] = end.Label == machine.RetryAllowed
		limited[i] = end.Label == machine.OverLimit
		limits = limits || limited[i]
		if end.Label != machine.Released {
			delays[i] = new(end.Delay.Truncate(time.Microsecond) + time.Microsecond)
		}
	}
	if limits {
		return fencedWrite(written, rescheduleLimited, columnsOf(ends), failed, delays, eventqueue.MaxRequeue, limited)
	}
	return fencedWrite(written, reschedule, columnsOf(ends), failed, delays, eventqueue.MaxRequeue)
}

var renew = fenced(`, ended AS (
    UPDATE events_v2 e SET locked_at = clock.now FROM clock WHERE ` + heldSQL + ` RETURNING e.id
)`)

// Renew implements eventqueue.ClaimStore.
func (s *Store) Renew(ctx context.Context, claims []eventqueue.Claim) (written eventqueue.Written, err error) {
	columns := claimColumns{ids: make([]int64, len(claims)), attempts: make([]int32, len(claims))}
	for i, c := range claims {
		columns.ids[i], columns.attempts[i] = int64(c.Event), c.Attempt
	}
	err = s.patiently(ctx, []query{fencedWrite(&written, renew, columns)})
	return written, err
}
