package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// The sums of minutes that are over for some time are in event_minute_totals: of all canvases, and of those that have many
// rows in a minute. Cron writes them in the order of the minutes, so that rows of event_minutes are read of later ones
// only, and of canvases with few of them. Where no cron runs, these are all.
//
// The planner does not know how few minutes are later: each is asked for, and so read by the index.
var totalsSQL = `
WITH summed AS MATERIALIZED (
    SELECT coalesce((SELECT minute FROM event_minute_totals ORDER BY minute DESC LIMIT 1), '-infinity') AS upto
)
SELECT NULL::uuid AS part, unsummed.minute, m.emitted, m.completed, m.failed, m.retried, m.cancelled, m.waits, m.pending, m.oldest_due, clock_timestamp()
FROM (
    SELECT asked.minute
    FROM summed CROSS JOIN generate_series(
        date_trunc('minute', now() - $3::interval, 'UTC'), date_trunc('minute', clock_timestamp(), 'UTC'), '1 minute') AS asked (minute)
    WHERE $1 AND asked.minute > summed.upto
    OFFSET 0
) AS unsummed CROSS JOIN LATERAL (
    SELECT count(*) AS rows, ` + minutes.SumsSQL() + `
    FROM event_minutes m WHERE m.minute = unsummed.minute
) AS m
WHERE m.rows > 0
UNION ALL
SELECT CASE WHEN NOT t.of_all THEN t.canvas_id END, t.minute, t.emitted, t.completed, t.failed, t.retried, t.cancelled,
    t.waits, t.pending, t.oldest_due, clock_timestamp()
FROM event_minute_totals t
WHERE t.minute >= date_trunc('minute', now() - $3::interval, 'UTC') AND (t.of_all AND $1 OR NOT t.of_all AND t.canvas_id = ANY ($2))
UNION ALL
SELECT unsummed.canvas_id, unsummed.minute, m.emitted, m.completed, m.failed, m.retried, m.cancelled, m.waits, m.pending, m.oldest_due, clock_timestamp()
FROM (
    SELECT c.canvas_id, asked.minute
    FROM unnest($2::uuid[]) AS c (canvas_id) CROSS JOIN generate_series(
        date_trunc('minute', now() - $3::interval, 'UTC'), date_trunc('minute', clock_timestamp(), 'UTC'), '1 minute') AS asked (minute)
    WHERE NOT EXISTS (SELECT FROM event_minute_totals t WHERE (t.minute, t.of_all, t.canvas_id) = (asked.minute, false, c.canvas_id))
    OFFSET 0
) AS unsummed CROSS JOIN LATERAL (
    SELECT count(*) AS rows, ` + minutes.SumsSQL() + `
    FROM event_minutes m WHERE (m.minute, m.canvas_id) = (unsummed.minute, unsummed.canvas_id)
) AS m
WHERE m.rows > 0
ORDER BY 2`

// Totals returns the sums over all handlers for each minute of the time since that has counts, with a zero
// Scope and without Run: those of each of the canvases, and with all those of all canvases, as those of the
// zero Canvas. They are read at one moment, with one statement. Its cost grows with the number of rows of the
// last minutes, and not with that of the events.
func (r *Reader) Totals(ctx context.Context, all bool, canvases []eventqueue.CanvasID, since time.Duration) (map[eventqueue.CanvasID][]Minute, error) {
	totals := map[eventqueue.CanvasID][]Minute{}
	rows, err := r.pool.Query(ctx, totalsSQL, all, uuids(canvases), since)
	if err != nil {
		return nil, err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var m Minute
		var part *[16]byte
		err = row.Scan(&part, &m.Begins, &m.Emitted, &m.Completed, &m.Failed, &m.Retried, &m.Cancelled, (*[]int64)(&m.Wait), &m.Pending, &m.OldestDue, &m.AsOf)
		var of eventqueue.CanvasID
		if part != nil {
			of = *part
		}
		m.Wait = m.Wait.Trimmed()
		totals[of] = append(totals[of], m)
		return none, err
	})
	return totals, err
}
