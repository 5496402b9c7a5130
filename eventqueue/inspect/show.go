package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
)

// Shown is an event in the queue or in event_log. Both are nil if it is in neither.
type Shown struct {
	Queued *QueuedEvent
	Logged *LogEntry
	// Rules are the rules that hold a queued event back.
	Rules []operate.Rule
	// Attempts are the newest failed attempts of the event, the oldest of them first.
	Attempts []Attempt
	// Workers are those of the attempts that are still known.
	Workers map[eventqueue.WorkerNumber]Worker
	// Group is the ordering group in which a queued event waits; nil if it waits in none.
	Group *Group
}

// Attributes are those of the event, in the queue or not.
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
		shown.Logged, err = optional(ctx, tx, scanLogged, showLogSQL, Filter{}.args("", true, id)...)
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
	// Next is the first event of the group that may run. It is 0 if there is none; the
	// relay repairs such a group.
	Next eventqueue.EventID
}

// An event waits at one stage at a time. The statement reads few rows, however many
// events wait with it.
const groupSQL = `
SELECT g.group_key, coalesce(events_v2_max_running(g.stage, g.canvas_id, g.group_key), 0), coalesce((
    SELECT t.event_id FROM event_groups t
    WHERE t.canvas_id = g.canvas_id AND t.group_key = g.group_key AND t.admitted
    ORDER BY t.event_id LIMIT 1), 0)
FROM event_groups g
WHERE g.event_id = $1 AND NOT g.admitted
LIMIT 1`

func scanGroup(canvas eventqueue.CanvasID) pgx.RowToFunc[Group] {
	return func(row pgx.CollectableRow) (l Group, err error) {
		var group string
		var most int
		err = row.Scan(&group, &most, &l.Next)
		l.Of = operate.LimitOfGroup(canvas, group, most)
		return l, err
	}
}
