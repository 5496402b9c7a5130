package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// EventState is what holds an event back, or lets it run, at one moment of the
// database's clock. An event that somebody runs is EventRunning whatever else is
// true of it; for the others the machine's order of questions decides: rule,
// delay, lock.
type EventState string

// The states of an event that has not ended.
const (
	EventWaiting EventState = "waiting" // due and free: a worker may claim it
	EventDelayed EventState = "delayed" // not due yet
	EventRunning EventState = "running" // its lock is held
	EventPaused  EventState = "paused"  // held back by a pause rule
	EventBlocked EventState = "blocked" // held back by a block rule, and perhaps by a pause as well
	EventExpired EventState = "expired" // its lock ran out: the next claim takes it over
	EventBehind  EventState = "behind"  // due and free, but others of its line are before it
)

// EventStates lists all states, in the order in which they are shown.
func EventStates() []EventState {
	return []EventState{EventWaiting, EventDelayed, EventRunning, EventPaused, EventBlocked, EventExpired, EventBehind}
}

// HandlerFilter narrows a listing. What is left empty is not asked about.
type HandlerFilter struct {
	Canvas *eventqueue.CanvasID
	Module string
	Name   string
}

// filterSQL compares $1 to $3, the arguments of HandlerFilter, with the columns
// of a table.
const filterSQL = `($1::uuid IS NULL OR canvas_id = $1) AND ($2::text = '' OR module = $2) AND ($3::text = '' OR name = $3)`

func (f HandlerFilter) args(more ...any) []any {
	return append([]any{(*[16]byte)(f.Canvas), f.Module, f.Name}, more...)
}

// HandlerFilterOf is the filter for exactly one scope.
func HandlerFilterOf(s eventqueue.Scope) HandlerFilter {
	return HandlerFilter{Canvas: &s.Canvas, Module: s.Module, Name: s.Name}
}

// QueuedEvent is an event that has not ended, as it stood at AsOf.
type QueuedEvent struct {
	// Event has its Value only when it comes from Show.
	eventqueue.Event
	ValueBytes int
	// Attempts counts the claims so far; it is the fence token of the last one.
	Attempts int32
	// LockedAt is when the lock was taken or renewed last; nil without a lock.
	LockedAt *time.Time
	// NotifiedAt is when a notification was published last; nil when one is owed.
	NotifiedAt *time.Time
	State      EventState
	// OrderingKey is empty for an event without one.
	OrderingKey string
	// AsOf is the database's clock, by which State was decided.
	AsOf time.Time
}

// stateSQL decides the EventState of an event e; $4 is the lock timeout.
const stateSQL = `
    CASE
        WHEN e.locked_at > clock.now - $4::interval THEN 'running'
        WHEN r.rule = 'block' THEN 'blocked'
        WHEN r.rule = 'pause' THEN 'paused'
        WHEN e.delay_until > clock.now THEN 'delayed'
        WHEN e.locked_at IS NOT NULL THEN 'expired'
        WHEN e.line = 1 THEN 'behind'
        ELSE 'waiting'
    END`

// eventsSQL shows every event with its state. Whoever writes rows by SQL can
// write a delay_until of any year; it is shown as the farthest time that JSON has.
const eventsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), shown AS (
    SELECT e.id, e.canvas_id, e.module, e.name, e.modifier, e.value, e.retries, e.attempts,
        least(greatest(e.delay_until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS delay_until,
        e.enqueued_at, e.locked_at, e.notified_at, clock.now, e.ordering_key,` + stateSQL + ` AS state
    FROM clock CROSS JOIN events_v2 e
    LEFT JOIN LATERAL (
        SELECT max(rule_type) AS rule FROM scheduling_rules
        WHERE canvas_id = e.canvas_id AND event_space = e.module AND handler_name = e.name
    ) AS r ON true
)
SELECT id, canvas_id, module, name, modifier, retries, attempts, delay_until, enqueued_at, locked_at, notified_at,
    octet_length(value), CASE WHEN $5::boolean THEN value END, now, state, ordering_key
FROM shown
WHERE ` + filterSQL

const listEventsSQL = eventsSQL + ` AND id > $6 AND ($7::text = '' OR state = $7)
ORDER BY id
LIMIT $8`

// ListEvents returns at most limit of the events that have not ended, by id,
// with ids above after; an empty state means all. lockTimeout is the workers'.
// It blocks for one statement, which reads as far as it must to find so many.
func (s *Store) ListEvents(ctx context.Context, filter HandlerFilter, state EventState, after eventqueue.EventID, limit int, lockTimeout time.Duration) ([]QueuedEvent, error) {
	rows, err := s.pool.Query(ctx, listEventsSQL, filter.args(lockTimeout, false, after, string(state), limit)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanQueued)
}

func scanQueued(row pgx.CollectableRow) (e QueuedEvent, err error) {
	err = row.Scan(&e.ID, (*[16]byte)(&e.Canvas), &e.Module, &e.Name, &e.Modifier, &e.Retries, &e.Attempts, &e.DelayUntil,
		&e.EnqueuedAt, &e.LockedAt, &e.NotifiedAt, &e.ValueBytes, (*[]byte)(&e.Value), &e.AsOf, &e.State, &e.OrderingKey)
	return e, err
}

// Shown is where an event is: in the queue, in event_log, or (both nil) nowhere.
type Shown struct {
	Queued *QueuedEvent
	Logged *LogEntry
	// Rules are those of a queued event's handler.
	Rules []eventqueue.Rule
	// Line is what a queued event waits in, if it does.
	Line *Line
}

const showEventSQL = eventsSQL + ` AND id = $6`

// Show returns an event, with its value, wherever it is at one moment: an event
// that ends meanwhile is not missed. lockTimeout is the workers'.
func (s *Store) Show(ctx context.Context, id eventqueue.EventID, lockTimeout time.Duration) (Shown, error) {
	var shown Shown
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		var err error
		shown.Queued, err = optional(ctx, tx, scanQueued, showEventSQL, HandlerFilter{}.args(lockTimeout, true, id)...)
		if err != nil {
			return err
		}
		if shown.Queued != nil {
			e := shown.Queued
			shown.Rules, err = listRules(ctx, tx, HandlerFilter{&e.Canvas, e.Module, e.Name})
			if err != nil || e.State != EventBehind {
				return err
			}
			shown.Line, err = optional(ctx, tx, scanLine(e.Canvas), lineSQL, id)
			return err
		}
		shown.Logged, err = optional(ctx, tx, scanLogged, showLogSQL, HandlerFilter{}.args("", true, id)...)
		return err
	})
	return shown, err
}

// optional reads one row, or none.
func optional[T any](ctx context.Context, db eventqueue.DB, scan pgx.RowToFunc[T], sql string, args ...any) (*T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &found, err
}

// HandlerStats counts what there is of one handler on one canvas.
type HandlerStats struct {
	eventqueue.Scope
	// Depth is how many events have not ended; the counts of the states add up
	// to it.
	Depth    int64
	ByState  map[EventState]int64
	Paused   bool
	Blocked  bool
	Failed   int64 // in event_log
	HasDue   bool
	OldestBy time.Duration // how long the oldest due event that nobody runs has been due; 0 without HasDue
}

// The three parts are grouped before they are joined: a handler may be in one of
// them only. States are in the order of EventStates.
const statsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), queued AS (
    SELECT e.canvas_id, e.module, e.name,` + stateSQL + ` AS state,
        count(*) AS n, min(greatest(e.delay_until, '0001-01-01 00:00Z')) FILTER (WHERE e.delay_until <= clock.now) AS due
    FROM clock CROSS JOIN events_v2 e
    LEFT JOIN (
        SELECT canvas_id, event_space AS module, handler_name AS name, max(rule_type) AS rule
        FROM scheduling_rules GROUP BY 1, 2, 3
    ) AS r USING (canvas_id, module, name)
    WHERE ` + filterSQL + `
    GROUP BY 1, 2, 3, 4
), depth AS (
    SELECT canvas_id, module, name,
        array_agg(state) AS states, array_agg(n::bigint) AS counts, sum(n)::bigint AS depth,
        min(due) FILTER (WHERE state <> 'running') AS due
    FROM queued GROUP BY 1, 2, 3
), rule AS (
    SELECT canvas_id, event_space AS module, handler_name AS name,
        bool_or(rule_type = 'pause') AS pause, bool_or(rule_type = 'block') AS block
    FROM scheduling_rules GROUP BY 1, 2, 3
), failed AS (
    SELECT canvas_id, module, name, count(*) AS n FROM event_log
    WHERE status = 'FAILED' AND ` + filterSQL + `
    GROUP BY 1, 2, 3
)
SELECT canvas_id, module, name, coalesce(depth, 0), states, counts,
    coalesce(pause, false), coalesce(block, false), coalesce(failed.n, 0), due, clock.now
FROM depth
FULL JOIN rule USING (canvas_id, module, name)
FULL JOIN failed USING (canvas_id, module, name)
CROSS JOIN clock
WHERE ` + filterSQL + `
ORDER BY canvas_id, module, name`

// Stats counts, for every handler that has an event, a rule or a failed event,
// what there is of it, in one statement that reads both tables to their end
// (without a filter on the canvas).
// lockTimeout is the workers'.
func (s *Store) Stats(ctx context.Context, filter HandlerFilter, lockTimeout time.Duration) ([]HandlerStats, error) {
	rows, err := s.pool.Query(ctx, statsSQL, filter.args(lockTimeout)...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h HandlerStats, err error) {
		var states []string
		var counts []int64
		var due *time.Time
		var now time.Time
		err = row.Scan((*[16]byte)(&h.Canvas), &h.Module, &h.Name, &h.Depth, &states, &counts,
			&h.Paused, &h.Blocked, &h.Failed, &due, &now)
		h.ByState = make(map[EventState]int64, len(states))
		for i, state := range states {
			h.ByState[EventState(state)] = counts[i]
		}
		if due != nil {
			h.HasDue, h.OldestBy = true, now.Sub(*due)
		}
		return h, err
	})
}

// created_at has no zone: it is in that of the session that wrote it, which is
// the server's, as is this one's.
const listRulesSQL = `
SELECT rule_type::text, canvas_id, module, name, created_at
FROM (SELECT id, rule_type, canvas_id, event_space AS module, handler_name AS name, created_at::timestamptz
      FROM scheduling_rules) AS rule
WHERE ` + filterSQL + `
ORDER BY canvas_id, module, name, rule_type`

// ListRules returns the rules that the filter lets through, by canvas, module,
// name and type.
func (s *Store) ListRules(ctx context.Context, filter HandlerFilter) ([]eventqueue.Rule, error) {
	return listRules(ctx, s.pool, filter)
}

func listRules(ctx context.Context, db eventqueue.DB, filter HandlerFilter) ([]eventqueue.Rule, error) {
	rows, err := db.Query(ctx, listRulesSQL, filter.args()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r eventqueue.Rule, err error) {
		err = row.Scan(&r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.CreatedAt)
		return r, err
	})
}

const hasEventsSQL = `
SELECT EXISTS (SELECT FROM events_v2 WHERE canvas_id = $1 AND module = $2 AND name = $3)`

// HasEvents tells whether an event of the scope has not ended.
func (s *Store) HasEvents(ctx context.Context, scope eventqueue.Scope) (has bool, err error) {
	err = s.pool.QueryRow(ctx, hasEventsSQL, [16]byte(scope.Canvas), scope.Module, scope.Name).Scan(&has)
	return has, err
}
