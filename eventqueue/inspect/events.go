package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/attributes"
	"eventsv2/internal/mayrun"
)

// State is whether an event may run, or why not.
type State = operate.EventState

// The states of an event that has not ended.
const (
	Waiting = operate.StateWaiting
	Delayed = operate.StateDelayed
	Running = operate.StateRunning
	Paused  = operate.StatePaused
	Blocked = operate.StateBlocked
	Expired = operate.StateExpired
	Behind  = operate.StateBehind
)

// States lists all states, in the order in which they are shown.
func States() []State { return operate.QueuedStates() }

// QueuedEvent is an event that has not ended, as it stood at AsOf.
type QueuedEvent struct {
	// Event has its Value only when it comes from Show.
	eventqueue.Event
	ValueBytes int
	// Attempts counts the claims so far. It is the fence token of the last claim.
	Attempts int32
	// ClaimID is the number of the last claim, which its worker logs; 0 before the first.
	ClaimID eventqueue.ClaimID
	// Begun means that the run of that claim is known to have begun.
	Begun bool
	// Company is with how many suspects the event may run in one worker, itself included, after it was in hand
	// when a worker died; 0: it is no suspect. If the lock of a run that has begun with a Company of 1
	// expires, that is a failed attempt.
	Company int
	// LockedAt is when the lock was last taken or renewed; nil without a lock.
	LockedAt *time.Time
	// Holder is the worker that has the lock, also one that has expired; nil without a lock, and for a
	// worker that is not known, since it has no row.
	Holder *Worker
	// NotifiedAt is when a notification was last published; nil while one is pending.
	NotifiedAt *time.Time
	State      State
	// LockValidFor is how long a lock is valid after LockedAt unless it is renewed, by the settings of the
	// database; State was decided by it.
	LockValidFor time.Duration
	// LastError is the error of the newest failed attempt; empty if there is none.
	LastError string
	// Cancellation is that of an event which an operator has cancelled while it ran, and which is not run again; nil if nobody has.
	Cancellation *operate.Cancellation
	// Progress is what the handler has reported last of the run that goes on; nil if it has reported nothing.
	Progress *Progress
	// OrderingKey and UniqueKey are empty for an event without one.
	OrderingKey, UniqueKey string
	// AsOf is the database's clock, by which State was decided.
	AsOf time.Time
}

// Progress is how far a run is, as its handler has reported.
type Progress struct {
	Fraction float64 // of 0 to 1
	Note     string
	At       time.Time // when it was written
}

// stateSQL decides the State of an event e.
var stateSQL = mayrun.StateSQL("r.rule", "clock.now", "clock.valid_for")

// progressSQL is what was reported of the run of an event e that goes on. SQL can have written any, which is not shown.
const progressSQL = `CASE WHEN e.locked_at IS NOT NULL AND (e.progress).attempt = e.attempts
            AND (e.progress).fraction BETWEEN 0 AND 1 AND (e.progress).at BETWEEN '0001-01-01 00:00Z' AND '9999-12-31 00:00Z' THEN e.progress END`

// eventsSQL shows every event with its state. A row that was written by SQL can have a
// delay_until of any year; it is shown as the farthest time that JSON has.
var eventsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), shown AS (
    SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.value, e.retries, e.attempts,
        least(greatest(e.delay_until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS delay_until,
        e.enqueued_at, e.locked_at, e.notified_at, clock.now, clock.valid_for, e.ordering_key, coalesce(e.unique_key, '') AS unique_key, coalesce(e.priority::text, '') AS priority,
        CASE WHEN e.claim_id > e.attempts THEN e.claim_id - e.attempts ELSE 0 END AS claim_id, e.begun, coalesce(e.suspect, 0) AS company,
        CASE WHEN e.cancellation IS DISTINCT FROM NULL THEN ARRAY[coalesce((e.cancellation).reason, ''), coalesce((e.cancellation).actor, '')] END AS cancellation,
        ` + progressSQL + ` AS progress,
        e.parent_id, e.attributes,` + stateSQL + ` AS state
    FROM clock CROSS JOIN events_v2 e
    CROSS JOIN LATERAL (SELECT ` + mayrun.RuleSQL("e") + ` AS rule) AS r
)
SELECT id, canvas_id, module, name, modifier, retries, attempts, delay_until, enqueued_at, locked_at, notified_at,
    octet_length(value), CASE WHEN $4::boolean THEN value END, now, state, ordering_key, unique_key, priority, claim_id, begun, company,
    coalesce((SELECT a.error FROM event_attempts a WHERE a.event_id = shown.id ORDER BY a.attempt DESC LIMIT 1), ''),
    coalesce(parent_id, 0), attributes::text, valid_for, cancellation, (progress).fraction, (progress).at, coalesce((progress).note, '')
FROM shown
WHERE ` + filterSQL

var (
	oldestEventsSQL = eventsSQL + ` AND id = ANY ($5::bigint[]) AND ($6::text = '' OR state = $6) ORDER BY id LIMIT $7`
	newestEventsSQL = eventsSQL + ` AND id = ANY ($5::bigint[]) AND ($6::text = '' OR state = $6) ORDER BY id DESC LIMIT $7`
)

// List returns at most limit of the events that have not ended, in the order of their ids after one, or with newest those with
// the highest ids first. An after of 0 is the beginning, and an empty state means all.
//
// next is the after with which the list goes on, and 0 at its end. It goes on after fewer than limit events, or none, where
// the filter matches few: List reads at most MostRead events, and finds out the states of at most 10,000.
func (r *Reader) List(ctx context.Context, filter Filter, state State, newest bool, after eventqueue.EventID, limit int) (events []QueuedEvent, next eventqueue.EventID, err error) {
	match := limit
	if state != "" {
		match = max(limit, mostJudged)
	}
	w, err := r.queued(ctx, filter, newest, after, match)
	if err != nil || len(w.ids) == 0 {
		return nil, w.next, err
	}
	sql := oldestEventsSQL
	if newest {
		sql = newestEventsSQL
	}
	events, err = byID(ctx, r, scanQueued, sql, Filter{}.args(false, w.ids, string(state), limit))
	if err != nil {
		return nil, 0, err
	}
	if len(events) == limit {
		w.next = events[limit-1].ID
	}
	return events, w.next, addHolders(ctx, r.pool, events)
}

func scanQueued(row pgx.CollectableRow) (e QueuedEvent, err error) {
	var text []byte
	var cancellation []string
	var fraction *float64
	var said *time.Time
	var note string
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.DelayUntil,
		&e.EnqueuedAt, &e.LockedAt, &e.NotifiedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf, &e.State, &e.OrderingKey, &e.UniqueKey, &e.Priority, &e.ClaimID, &e.Begun, &e.Company,
		&e.LastError, &e.ParentID, &text, &e.LockValidFor, &cancellation, &fraction, &said, &note)
	if len(cancellation) == 2 {
		e.Cancellation = &operate.Cancellation{Reason: cancellation[0], Actor: cancellation[1]}
	}
	if fraction != nil && said != nil {
		e.Progress = &Progress{*fraction, note, *said}
	}
	e.Attributes = attributes.Decode(text)
	return e, err
}
