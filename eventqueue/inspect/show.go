package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
)

// Shown is an event in the queue or in event_log. Both are nil if it is in neither.
type Shown struct {
	Queued *QueuedEvent
	Logged *LogEntry
	// Rules are the rules that hold a queued event back.
	Rules []operate.Rule
	// Attempts are the newest failed attempts of the event, the oldest of them first.
	Attempts []Attempt
	// Workers lists the workers of the recorded attempts.
	Workers map[eventqueue.WorkerNumber]Worker
	// Group is the ordering group in which a queued event waits, or would have to; nil if there is none.
	Group *Group
}

// Attributes are the event's, in the queue or not.
func (s Shown) Attributes() map[string]string {
	switch {
	case s.Queued != nil:
		return s.Queued.Attributes
	case s.Logged != nil:
		return s.Logged.Attributes
	default:
		return nil
	}
}

var showEventSQL = eventsSQL + ` AND id = $5`

// Show returns an event with its value, from the queue or from event_log. It reads both
// at one moment, so it also finds an event that ends meanwhile.
func (r *Reader) Show(ctx context.Context, id eventqueue.EventID) (Shown, error) {
	var shown Shown
	err := r.pool.Snapshot(ctx, func(tx pgsession.DB) (err error) {
		shown, err = show(ctx, tx, id)
		return err
	})
	return shown, err
}

// show is Show in a transaction.
func show(ctx context.Context, tx eventqueue.DB, id eventqueue.EventID) (shown Shown, err error) {
	shown.Queued, err = optional(ctx, tx, scanQueued, showEventSQL, Filter{}.args(true, id)...)
	if err != nil {
		return shown, err
	}
	if shown.Attempts, err = listAttempts(ctx, tx, id); err != nil {
		return shown, err
	}
	if shown.Workers, err = workersOf(ctx, tx, shown.Attempts); err != nil {
		return shown, err
	}
	if shown.Queued == nil {
		shown.Logged, err = optional(ctx, tx, scanLogged, showLogSQL, true, []eventqueue.EventID{id})
		return shown, err
	}
	e := shown.Queued
	only := []QueuedEvent{*e}
	if err := addHolders(ctx, tx, only); err != nil {
		return shown, err
	}
	e.Holder = only[0].Holder
	shown.Rules, err = rulesOf(ctx, tx, &e.Event)
	if err != nil {
		return shown, err
	}
	shown.Group, err = optional(ctx, tx, scanGroup(e.Canvas), groupSQL, id)
	return shown, err
}

// Group is an ordering group in which an event waits.
type Group struct {
	// Of is the key or the limit of the group, with the number of its events that may run
	// at once: Max is 1 for a key without a limit, and 0 if the limit has been removed.
	Of operate.ConcurrencyLimit
	// Next is the first event of the group that may run, or runs, and where there is none, the first
	// that waits. It is 0 if the places belong to events that were deleted by hand; the relay repairs such a group.
	Next eventqueue.EventID
}

// groupSQL finds the first of an event's groups that would not admit it now, as events_v2_advance decides when a worker
// gets its notification: so an event that has yet to join its groups, or that no worker has tried since it was emitted, waits
// in a group only if others hold its places, or come before it. Under a limit, those that a rule or a delay holds back lose
// their places to an event that arrives. It reads few rows, however many events wait. Under a limit that was removed,
// max_running is NULL: the event waits only behind more events than one call admits.
var groupSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
)
SELECT own.group_key, coalesce(most.max_running, 0), coalesce(holders.first, ahead.first, 0)
FROM events_v2 e CROSS JOIN generate_series(1, 3) AS stage
CROSS JOIN LATERAL (SELECT events_v2_group_key(stage, e.module, e.name, e.ordering_key) AS group_key) AS own
CROSS JOIN LATERAL (SELECT events_v2_max_running(stage, e.canvas_id, own.group_key) AS max_running) AS most
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(x.id) AS first
    FROM (SELECT g.event_id FROM event_groups g
          WHERE g.canvas_id = e.canvas_id AND g.group_key = own.group_key AND g.admitted
          ORDER BY g.event_id LIMIT coalesce(most.max_running, 0) + ` + admittedAtOnceSQL + `) AS g
    LEFT JOIN events_v2 x ON x.id = g.event_id
    WHERE stage = 1 OR x.id IS NULL OR x.group_state <> 2
       OR NOT ` + mayrun.UnlockedSQL("x.locked_at", "(SELECT now - valid_for FROM clock)") + `
       OR ` + mayrun.DueSQL("x.delay_until", "(SELECT now FROM clock)") + ` AND NOT ` + mayrun.RuledSQL("x") + `
) AS holders
CROSS JOIN LATERAL (
    SELECT count(*) AS n, min(g.event_id) AS first
    FROM (SELECT g.event_id FROM event_groups g
          WHERE g.canvas_id = e.canvas_id AND g.group_key = own.group_key AND NOT g.admitted AND g.event_id < e.id
            AND (SELECT true FROM events_v2 x WHERE x.id = g.event_id)
          ORDER BY g.event_id LIMIT ` + admittedAtOnceSQL + `) AS g
) AS ahead
WHERE e.id = $1 AND (e.group_state IN (1, 3) OR ` + mayrun.NeedsGroupSQL + `)
  AND (stage > 1 OR e.ordering_key <> '')
  AND (SELECT g.admitted FROM event_groups g WHERE g.event_id = e.id AND g.stage = stage.stage) IS NOT TRUE
  AND ahead.n >= least(most.max_running - holders.n, ` + admittedAtOnceSQL + `)
ORDER BY stage
LIMIT 1`

// admittedAtOnceSQL is how many events of one group events_v2_advance admits in a call.
const admittedAtOnceSQL = `1000`

func scanGroup(canvas eventqueue.CanvasID) pgx.RowToFunc[Group] {
	return func(row pgx.CollectableRow) (l Group, err error) {
		var group string
		var most int
		err = row.Scan(&group, &most, &l.Next)
		l.Of = operate.LimitOfGroup(canvas, group, most)
		return l, err
	}
}
