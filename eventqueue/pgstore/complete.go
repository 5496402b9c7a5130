package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// fenced makes a statement that writes many claims, in the form that waits for locked
// rows and in the form that skips them (see lockwait.go). The CTE ended writes the
// rows for which heldSQL holds and returns their ids. The result has a row for each
// claim that was not written: it is lost, or its row is locked.
//
// The fence (I5): the token and the number are the claim's, and the lock was not given
// back under them. A row that was written since the statement began is checked
// again, or left for another try. IS TRUE keeps the planner from making a
// join of the list of tokens.
//
// If the claim returned the row's location, no index is read. The row at that
// location has to pass the fence like any other row.
//
// The parameters $1 to $4 are arrays, an element for each claim: the event, attempts, the number and the location. Those
// of the CTE begin with $5.
func fenced(ended string) forms {
	const (
		clock = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), held AS (
    SELECT `
		byID = `(
        SELECT e.ctid FROM events_v2 e
        WHERE ` + mineSQL
		mine = ` AS version
    FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::tid[]) AS mine (id, attempts, claim_id, place)`
		answer = `
SELECT mine.id, NOT EXISTS (
        SELECT FROM events_v2 e
        WHERE ` + mineSQL + `) AS lost
FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS mine (id, attempts, claim_id)
WHERE ` + someLeftSQL + ` AND mine.id NOT IN (SELECT id FROM ended)`
	)
	return forms{
		waits: clock + "coalesce(mine.place, " + byID + "))" + mine + " WHERE " + lockWaitSQL + "\n)" + ended + answer,
		skips: clock + byID + " FOR UPDATE SKIP LOCKED)" + mine + "\n)" + ended + answer,
	}
}

// mineSQL is the fence for an event e and a claim mine.
const mineSQL = `e.id = mine.id AND e.attempts = mine.attempts AND coalesce(e.claim_id - e.attempts, 0) = mine.claim_id AND e.locked_at IS NOT NULL`

// someLeftSQL is whether ended has not written all claims.
const someLeftSQL = `(SELECT count(*) FROM ended) < cardinality($1::bigint[])`

const heldSQL = `e.ctid = ANY (ARRAY(SELECT version FROM held)) AND e.locked_at IS NOT NULL
      AND ((e.id, e.attempts, coalesce(e.claim_id - e.attempts, 0)) IN (SELECT * FROM unnest($1::bigint[], $2::int[], $3::bigint[]))) IS TRUE`

var deleteCompleted = fenced(`, ended AS (
    DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.id
)`)

// An event leaves events_v2 and enters event_log in one statement (I1, I9). A
// status of NULL keeps no history. The reason of a failed event is the label of its end, unless that is RetryTooMany; a cancelled one has that of the
// cancellation that ended its run.
var deleteAndLogSQL = `, ended AS (
    DELETE FROM events_v2 e WHERE ` + heldSQL + ` RETURNING e.*
), logged AS (
    INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, ordering_key, attributes, parent_id, reason,
        actor, duration, worker, unique_key, result, run_log)
    SELECT id, canvas_id, module, name, modifier, value, status::event_log_status, retries, attempts, last_error, enqueued_at,
        nullif(ordering_key, ''), attributes, parent_id, CASE status WHEN 'CANCELLED' THEN nullif((cancellation).reason, '') ELSE reason END,
        CASE status WHEN 'CANCELLED' THEN nullif((cancellation).actor, '') END, duration, CASE WHEN duration IS NOT NULL THEN ` + workerSQL + ` END, unique_key, result, run_log
    FROM ended JOIN unnest($1::bigint[], $5::text[], $6::text[], $8::text[], $10::interval[], $11::text[], $12::text[]) AS how (id, status, last_error, reason, duration, result, run_log) USING (id)
    WHERE status IS NOT NULL
    -- A row that was put back by hand under its old id is logged all the same.
    ON CONFLICT (id) DO UPDATE SET status = excluded.status, value = excluded.value, retries = excluded.retries,
        attempts = excluded.attempts, last_error = excluded.last_error, created_at = excluded.created_at,
        ordering_key = excluded.ordering_key, attributes = excluded.attributes, parent_id = excluded.parent_id,
        reason = excluded.reason, actor = excluded.actor, duration = excluded.duration, worker = excluded.worker, unique_key = excluded.unique_key, result = excluded.result, run_log = excluded.run_log
)`

var deleteLogAndRecordSQL = deleteAndLogSQL + recordSQL("$7", "$6", "$9", "$12")

var deleteAndLog = fenced(deleteLogAndRecordSQL)

// deleteAndStamp is for batches with an event whose unique key stays reserved after
// its completion. An event that was retried by hand is completed a second time.
var deleteAndStamp = fenced(deleteLogAndRecordSQL + `, stamped AS (
    INSERT INTO unique_expiries (event_id, unique_seconds, expires_at)
    SELECT id, unique_seconds, clock.now + unique_seconds * interval '1 second'
    FROM ended CROSS JOIN clock
    WHERE unique_seconds > 0
    ON CONFLICT (event_id) DO UPDATE SET unique_seconds = excluded.unique_seconds, expires_at = excluded.expires_at
)`)

// If the event is due again within MaxRequeue, the worker requeues its notification
// with that delay. Otherwise a notification is pending. Without a new delay the event
// is as it was before the claim. An event whose cancellation is wanted has no further
// run to wait for: it is not written, and cancelledSQL answers with it.
const (
	rescheduleSQL = `, ended AS (
    UPDATE events_v2 e
    SET locked_at = NULL, begun = false, lost_run = e.lost_run AND how.delay IS NULL,
        suspect = CASE WHEN how.company > 0 THEN how.company WHEN NOT (how.failed OR how.snoozed) THEN e.suspect END,
        begin_first = e.begin_first AND NOT (how.failed OR how.snoozed),
        retries = e.retries + how.failed::int,
        snoozes = CASE WHEN how.snoozed THEN least(e.snoozes + 1, 32767) WHEN how.failed THEN 0 ELSE e.snoozes END,
        delay_until = CASE WHEN how.delay IS NULL THEN e.delay_until`
	rescheduleDelaySQL = ` ELSE clock.now + how.delay END,
        notified_at = CASE WHEN how.delay IS NULL THEN e.notified_at`
	rescheduleNotifySQL = ` WHEN how.delay <= $7::interval THEN clock.now + how.delay END`
	rescheduledSQL      = `
    WHERE ` + heldSQL + ` AND how.id = e.id AND NOT ` + cancelWantedSQL + `
    RETURNING e.id, e.canvas_id, e.attempts, e.claim_id
)`
	cancelledSQL = `
UNION ALL
SELECT mine.id, NULL FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS mine (id, attempts, claim_id)
WHERE ` + someLeftSQL + ` AND EXISTS (SELECT FROM events_v2 e WHERE ` + mineSQL + ` AND ` + cancelWantedSQL + `)`
	// tooLateSQL: the limit that puts the event off has been changed since it was asked
	// (see TakeLimited). Then the event is due at once.
	tooLateSQL = ` WHEN how.limited AND e.limited_attempt = -` + limitedAttemptSQL
)

var reschedule = fenced(rescheduleSQL + rescheduleDelaySQL + rescheduleNotifySQL + `
    FROM clock, unnest($1::bigint[], $5::boolean[], $6::interval[], $8::boolean[], $11::smallint[]) AS how (id, failed, delay, snoozed, company)` + rescheduledSQL + recordSQL("$9", "$10", "$12", "$13")).and(cancelledSQL)

// rescheduleLimited is for batches with an event that a rate limit puts off.
var rescheduleLimited = fenced(rescheduleSQL + tooLateSQL + ` THEN clock.now` + rescheduleDelaySQL + tooLateSQL + ` THEN NULL` + rescheduleNotifySQL + `,
        limited_attempt = CASE WHEN how.limited THEN ` + limitedAttemptSQL + ` ELSE e.limited_attempt END
    FROM clock, unnest($1::bigint[], $5::boolean[], $6::interval[], $8::boolean[], $11::smallint[], $14::boolean[]) AS how (id, failed, delay, snoozed, company, limited)` + rescheduledSQL + recordSQL("$9", "$10", "$12", "$13")).and(cancelledSQL)

// Complete implements worker.Store: at most two statements, and one more for events
// in ordering groups, in one round trip and one transaction. A *refusal.Error beside the
// result has the rows, or another error, because of which groups could not advance. Within
// a transaction of the caller no group advances: it would stay locked until that
// transaction ends.
func (s *Store) Complete(ctx context.Context, in eventqueue.DB, completions []worker.Completion, retain bool) (_ worker.WriteResult, err error) {
	in = s.pool.In(in)
	deleted, rescheduled := completions, []worker.Completion(nil)
	if slices.ContainsFunc(completions, reschedules) {
		deleted = nil
		for _, completion := range completions {
			if reschedules(completion) {
				rescheduled = append(rescheduled, completion)
			} else {
				deleted = append(deleted, completion)
			}
		}
	}
	var queries []query
	var deletions, updates worker.WriteResult
	if len(deleted) > 0 {
		queries = append(queries, deletion(&deletions, deleted, retain))
	}
	if len(rescheduled) > 0 {
		queries = append(queries, rescheduling(&updates, rescheduled))
	}
	var advanced []eventqueue.Event
	if in == nil {
		advanced, err = s.writeAndAdvance(ctx, queries, afterCompletion(completions))
	} else {
		err = within(ctx, in, queries)
	}
	if err != nil && !refusal.Is(err) {
		return worker.WriteResult{}, err
	}
	return worker.WriteResult{
		Done:      append(deletions.Done, updates.Done...),
		Lost:      append(deletions.Lost, updates.Lost...),
		Cancelled: updates.Cancelled,
		Advanced:  advanced,
	}, err
}

// reschedules reports whether a completion leaves the event in the queue.
func reschedules(completion worker.Completion) bool {
	switch completion.Label {
	case machine.ExecutesToCompletion, machine.RetryTooMany, machine.FailedForGood, machine.Cancelled:
		return false
	case machine.RetryAllowed, machine.Snoozed, machine.Released, machine.OverLimit:
		return true
	default:
		panic("pgstore: an event cannot end with " + string(completion.Label))
	}
}

// writeAndAdvance writes completions and advances their groups, in one transaction. If the database
// refuses that, the row may be that of an event to which a group advances, which must not cost the
// completion. Then the completions are written first, and the groups advance around such rows (I15).
func (s *Store) writeAndAdvance(ctx context.Context, completions []query, groups *advancing) (advanced []eventqueue.Event, err error) {
	if len(groups.left) == 0 {
		return nil, s.waitThenSkip(ctx, completions)
	}
	err = s.waitThenSkip(ctx, append(slices.Clip(completions), advance(&advanced, groups)))
	if !sqlstate.Refused(err) {
		return advanced, err
	}
	if err := s.waitThenSkip(ctx, completions); err != nil {
		return nil, err
	}
	return s.advanceWritten(ctx, groups)
}

// fencedWrite is a fenced statement that sets written.
func fencedWrite(written *worker.WriteResult, sql forms, claims claimColumns, more ...any) query {
	ids := claims.ids
	return query{
		forms:     sql,
		arguments: append([]any{ids, claims.attempts, claims.claimIDs, claims.places}, more...),
		read: func(rows pgx.Rows) error {
			left, err := pgx.CollectRows(rows, pgx.RowToStructByPos[fencedAnswer])
			if err != nil {
				return err
			}
			*written = worker.WriteResult{Done: without(left, ids)}
			for _, claim := range left {
				switch {
				case claim.Lost == nil:
					written.Cancelled = append(written.Cancelled, claim.ID)
				case *claim.Lost:
					written.Lost = append(written.Lost, claim.ID)
				}
			}
			return nil
		},
	}
}

// fencedAnswer is a row of a fenced statement's result: a claim that was not written, or, without Lost, one whose event's
// cancellation is wanted.
type fencedAnswer struct {
	ID   eventqueue.EventID
	Lost *bool
}

// without returns the ids that were written: those that are not left.
func without(left []fencedAnswer, ids []int64) []eventqueue.EventID {
	unwritten := make(map[int64]bool, len(left))
	for _, claim := range left {
		if claim.Lost != nil {
			unwritten[int64(claim.ID)] = true
		}
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
	claimIDs []int64
	places   []pgtype.TID // none, or one for each
}

func columnsOf(completions []worker.Completion) claimColumns {
	c := claimColumns{ids: make([]int64, len(completions)), attempts: make([]int32, len(completions)), claimIDs: make([]int64, len(completions)), places: make([]pgtype.TID, len(completions))}
	for i := range completions {
		c.ids[i], c.attempts[i], c.claimIDs[i], c.places[i] = int64(completions[i].Event), completions[i].Attempt, int64(completions[i].ID), tidOf(completions[i].RowID)
	}
	return c
}

// rowIDOf packs the location of a row. No row has the offset 0.
func rowIDOf(tid pgtype.TID) worker.RowID {
	return worker.RowID(tid.BlockNumber)<<16 | worker.RowID(tid.OffsetNumber)
}

func tidOf(place worker.RowID) pgtype.TID {
	return pgtype.TID{BlockNumber: uint32(place >> 16), OffsetNumber: uint16(place), Valid: place != 0}
}

func deletion(written *worker.WriteResult, completions []worker.Completion, retain bool) query {
	if !retain && !slices.ContainsFunc(completions, leavesTraces) {
		return fencedWrite(written, deleteCompleted, columnsOf(completions))
	}
	statuses, lastErrors, reasons := make([]*string, len(completions)), make([]*string, len(completions)), make([]*string, len(completions))
	durations, stacks := make([]*time.Duration, len(completions)), stacksOf(completions)
	var completed []*time.Duration // of runs that are kept as complete
	var results []*string          // of the same, if there are any
	stamps := false
	for i := range completions {
		durations[i] = recordedDuration(&completions[i])
		stamps = stamps || completions[i].Unique
		if completions[i].Label == machine.FailedForGood {
			reasons[i] = new(string(machine.FailedForGood))
		}
		switch {
		case completions[i].Label == machine.Cancelled:
			statuses[i] = new(string(maintenance.LogCancelled))
		case completions[i].Label != machine.ExecutesToCompletion:
			statuses[i], lastErrors[i] = new(string(maintenance.LogFailed)), &completions[i].LastError
		case retain:
			statuses[i] = new(string(maintenance.LogCompleted))
			if completed == nil {
				completed = make([]*time.Duration, len(completions))
			}
			if completions[i].Duration > 0 {
				completed[i] = &completions[i].Duration
			}
			if completions[i].Result != nil {
				if results == nil {
					results = make([]*string, len(completions))
				}
				results[i] = new(string(completions[i].Result))
			}
		}
	}
	if stamps {
		return fencedWrite(written, deleteAndStamp, columnsOf(completions), statuses, lastErrors, durations, reasons, stacks, completed, results, logsOf(completions))
	}
	return fencedWrite(written, deleteAndLog, columnsOf(completions), statuses, lastErrors, durations, reasons, stacks, completed, results, logsOf(completions))
}

// leavesTraces reports whether the end of an event is written down even where completed events are not kept.
func leavesTraces(completion worker.Completion) bool {
	return completion.Unique || completion.Label != machine.ExecutesToCompletion
}

// stacksOf are the stacks of handlers that panicked; nil: none has.
func stacksOf(completions []worker.Completion) (stacks []*string) {
	for i := range completions {
		if completions[i].Stack == "" || !completions[i].Records() {
			continue
		}
		if stacks == nil {
			stacks = make([]*string, len(completions))
		}
		stacks[i] = &completions[i].Stack
	}
	return stacks
}

// logsOf are what the runs have logged that completed their events or failed; nil: none has logged anything.
func logsOf(completions []worker.Completion) (logs []*string) {
	for i := range completions {
		if completions[i].RunLog == "" {
			continue
		}
		switch completions[i].Label {
		case machine.ExecutesToCompletion, machine.RetryAllowed, machine.RetryTooMany, machine.FailedForGood:
			if logs == nil {
				logs = make([]*string, len(completions))
			}
			logs[i] = &completions[i].RunLog
		default:
		}
	}
	return logs
}

func rescheduling(written *worker.WriteResult, completions []worker.Completion) query {
	failed, delays := make([]bool, len(completions)), make([]*time.Duration, len(completions))
	snoozed, limited, limits := make([]bool, len(completions)), make([]bool, len(completions)), false
	durations, failures := make([]*time.Duration, len(completions)), make([]*string, len(completions))
	companies := make([]int16, len(completions))
	for i := range completions {
		completion := &completions[i]
		companies[i] = int16(min(completion.Company, worker.AnyCompany)) //nolint:gosec // bounded
		if durations[i] = recordedDuration(completion); durations[i] != nil {
			failures[i] = &completion.LastError
		}
		failed[i] = completion.Label == machine.RetryAllowed
		snoozed[i] = completion.Label == machine.Snoozed
		limited[i] = completion.Label == machine.OverLimit
		limits = limits || limited[i]
		if completion.Label != machine.Released {
			delays[i] = new(completion.Delay.Truncate(time.Microsecond) + time.Microsecond)
		}
	}
	if limits {
		return fencedWrite(written, rescheduleLimited, columnsOf(completions), failed, delays, eventqueue.MaxRequeue, snoozed, durations, failures, companies, stacksOf(completions), logsOf(completions), limited)
	}
	return fencedWrite(written, reschedule, columnsOf(completions), failed, delays, eventqueue.MaxRequeue, snoozed, durations, failures, companies, stacksOf(completions), logsOf(completions))
}
