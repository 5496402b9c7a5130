package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// ActivityFor is the time that Activity is about.
const ActivityFor = 10 * time.Minute

// maxActivities is how many handlers Activities returns.
const maxActivities = 2000

// Activity has the counts of one handler on one canvas in the last ten minutes.
type Activity struct {
	eventqueue.Scope
	// Completed, and Failed and Retried together, are the runs that ended with and without success.
	Completed, Unsuccessful int64
	// Pending and OldestDue are as in Minute, of the newest minute in which they were counted; nil if that is older
	// than three minutes.
	Pending   *int64
	OldestDue *time.Duration
	// Before is OldestDue of the oldest minute in which that was counted, Earlier before the newest one. It is nil
	// if nothing was due then, or if there is only one.
	Before  *time.Duration
	Earlier time.Duration
	// AsOf is when it was read, by the database's clock.
	AsOf time.Time
}

// What is summed is read by its index, as by Totals. Rows that have a count of what is pending are newer than four minutes as in SumMinutes. They are looked up by their
// keys: a LIMIT keeps the planner from joining them with all counts that there are.
const activitiesSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), summed AS (
    SELECT canvas_id, module, name, sum(completed)::bigint AS completed, sum(failed + retried)::bigint AS unsuccessful,
        max(minute) FILTER (WHERE pending IS NOT NULL) AS newest, min(minute) FILTER (WHERE pending IS NOT NULL) AS oldest
    FROM event_minutes
    WHERE minute BETWEEN date_trunc('minute', now() - $3::interval, 'UTC') AND (SELECT now FROM clock) AND ($1 OR canvas_id = ANY ($2))
    GROUP BY canvas_id, module, name
), counted AS (
    SELECT s.*, n.pending, n.oldest_due, o.oldest_due AS before, s.newest - s.oldest AS earlier
    FROM summed s CROSS JOIN clock
    LEFT JOIN LATERAL (SELECT m.pending, m.oldest_due FROM event_minutes m
        WHERE s.newest > clock.now - $4::interval AND (m.minute, m.canvas_id, m.module, m.name) = (s.newest, s.canvas_id, s.module, s.name) LIMIT 1) AS n ON true
    LEFT JOIN LATERAL (SELECT m.oldest_due FROM event_minutes m
        WHERE s.oldest < s.newest AND (m.minute, m.canvas_id, m.module, m.name) = (s.oldest, s.canvas_id, s.module, s.name) LIMIT 1) AS o ON true
)
SELECT canvas_id, module, name, completed, unsuccessful, pending, oldest_due, before, coalesce(earlier, '0'), clock.now
FROM counted CROSS JOIN clock
WHERE oldest_due IS NOT NULL OR (unsuccessful > 0 AND completed = 0)
ORDER BY oldest_due DESC NULLS LAST, unsuccessful DESC, canvas_id, module, name
LIMIT $5`

// Activities returns the handlers on some canvases that have due events which no worker runs, or whose runs of the
// last ten minutes all failed: those with the oldest due events first, and 2,000 at most. all is those of all
// canvases. Its cost grows with the number of rows of counts there, and not with that of the events.
func (r *Reader) Activities(ctx context.Context, all bool, canvases []eventqueue.CanvasID) ([]Activity, error) {
	rows, err := r.pool.Query(ctx, activitiesSQL, all, uuids(canvases), ActivityFor, recent+time.Minute, maxActivities)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Activity, err error) {
		err = row.Scan((*[16]byte)(&a.Canvas), &a.Module, &a.Name, &a.Completed, &a.Unsuccessful, &a.Pending, &a.OldestDue, &a.Before, &a.Earlier, &a.AsOf)
		return a, err
	})
}

func uuids(canvases []eventqueue.CanvasID) [][16]byte {
	list := make([][16]byte, len(canvases))
	for i, canvas := range canvases {
		list[i] = canvas
	}
	return list
}
