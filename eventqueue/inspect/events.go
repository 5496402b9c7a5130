package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/mayrun"
)

// State is whether an event may run, or why not, at one moment of the database's clock.
// An event that a worker runs is Running, even if a rule or a delay applies as well. For
// any other event the first of rule, delay and lock that applies decides.
type State string

// The states of an event that has not ended.
const (
	Waiting State = "waiting" // due and free: a worker may claim it
	Delayed State = "delayed" // not due yet
	Running State = "running" // its lock is held
	Paused  State = "paused"  // held back by a pause rule
	Blocked State = "blocked" // held back by a block rule, and perhaps by a pause as well
	Expired State = "expired" // its lock ran out: the next claim takes it over
	Behind  State = "behind"  // due and free, but others of its ordering group are before it
)

// States lists all states, in the order in which they are shown.
func States() []State {
	return []State{Waiting, Delayed, Running, Paused, Blocked, Expired, Behind}
}

// QueuedEvent is an event that has not ended, as it stood at AsOf.
type QueuedEvent struct {
	// Event has its Value only when it comes from Show.
	eventqueue.Event
	ValueBytes int
	// Attempts counts the claims so far. It is the fence token of the last claim.
	Attempts int32
	// ClaimID is the number of the last claim, which its worker logs; 0 before the first.
	ClaimID eventqueue.ClaimID
	// Begun means that the run of that claim is known to have begun. If its lock expires,
	// the run counts as a failed attempt.
	Begun bool
	// LockedAt is when the lock was last taken or renewed; nil without a lock.
	LockedAt *time.Time
	// NotifiedAt is when a notification was last published; nil while one is pending.
	NotifiedAt *time.Time
	State      State
	// OrderingKey is empty for an event without one.
	OrderingKey string
	// AsOf is the database's clock, by which State was decided.
	AsOf time.Time
}

// stateSQL decides the State of an event e; $4 is the lock timeout.
var stateSQL = `
    CASE
        WHEN NOT ` + mayrun.UnlockedSQL("e.locked_at", mayrun.ValidSinceSQL("clock.now", "$4")) + ` THEN 'running'
        WHEN r.rule = 'block' THEN 'blocked'
        WHEN r.rule = 'pause' THEN 'paused'
        WHEN NOT ` + mayrun.DueSQL("e.delay_until", "clock.now") + ` THEN 'delayed'
        WHEN e.locked_at IS NOT NULL THEN 'expired'
        WHEN NOT ` + mayrun.NotBehindSQL("e.group_state") + ` THEN 'behind'
        ELSE 'waiting'
    END`

// eventsSQL shows every event with its state. A row that was written by SQL can have a
// delay_until of any year; it is shown as the farthest time that JSON has.
var eventsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), shown AS (
    SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.value, e.retries, e.attempts,
        least(greatest(e.delay_until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS delay_until,
        e.enqueued_at, e.locked_at, e.notified_at, clock.now, e.ordering_key, CASE WHEN e.claim_id > e.attempts THEN e.claim_id - e.attempts ELSE 0 END AS claim_id, e.begun,` + stateSQL + ` AS state
    FROM clock CROSS JOIN events_v2 e
    LEFT JOIN LATERAL (
        SELECT max(rule_type) AS rule FROM scheduling_rules
        WHERE canvas_id = e.canvas_id AND event_space = e.module AND handler_name = e.name
    ) AS r ON true
)
SELECT id, canvas_id, module, name, modifier, retries, attempts, delay_until, enqueued_at, locked_at, notified_at,
    octet_length(value), CASE WHEN $5::boolean THEN value END, now, state, ordering_key, claim_id, begun
FROM shown
WHERE ` + filterSQL

var listEventsSQL = eventsSQL + ` AND id > $6 AND ($7::text = '' OR state = $7)
ORDER BY id
LIMIT $8`

// List returns at most limit of the events that have not ended and whose ids are above
// after, in the order of their ids. An empty state means all. lockTimeout is the lock
// timeout of the workers. List blocks for one statement, which reads events until it has
// found limit of them.
func (r *Reader) List(ctx context.Context, filter Filter, state State, after eventqueue.EventID, limit int, lockTimeout time.Duration) ([]QueuedEvent, error) {
	rows, err := r.pool.Query(ctx, listEventsSQL, filter.args(lockTimeout, false, after, string(state), limit)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanQueued)
}

func scanQueued(row pgx.CollectableRow) (e QueuedEvent, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.DelayUntil,
		&e.EnqueuedAt, &e.LockedAt, &e.NotifiedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf, &e.State, &e.OrderingKey, &e.ClaimID, &e.Begun)
	return e, err
}
