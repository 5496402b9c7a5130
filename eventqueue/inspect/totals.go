package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// unsummedFor is how far back minutes are summed up from their rows where cron has not done it. Without a bound, a day of a busy
// queue would be millions of rows.
const unsummedFor = 2 * time.Hour

// The sums of minutes that are over for some time are in event_minute_totals: of all canvases, and of those that have many
// rows in a minute. Cron writes them, so that rows of event_minutes are read of the last minutes only, and of canvases with
// few of them. Where no cron runs, these are all rows of the last minutes, and of those before is only said that there are some.
//
// The planner does not know how few minutes lack sums: each is asked for, and so read by the index.
var totalsSQL = `
WITH asked AS MATERIALIZED (
    SELECT minute, minute >= date_trunc('minute', now() - $4::interval, 'UTC') AS late,
        EXISTS (SELECT FROM event_minute_totals t WHERE (t.minute, t.of_all, t.canvas_id) = (asked.minute, true, '00000000-0000-0000-0000-000000000000')) AS summed
    FROM generate_series(date_trunc('minute', now() - $3::interval, 'UTC'), date_trunc('minute', clock_timestamp(), 'UTC'), '1 minute') AS asked (minute)
)
SELECT NULL::uuid AS part, asked.minute, m.emitted, m.completed, m.failed, m.retried, m.cancelled, m.waits, m.pending, m.oldest_due, false, clock_timestamp()
FROM (SELECT minute FROM asked WHERE $1 AND late AND NOT summed OFFSET 0) AS asked CROSS JOIN LATERAL (
    SELECT count(*) AS rows, ` + minutes.SumsSQL() + `
    FROM event_minutes m WHERE m.minute = asked.minute
) AS m
WHERE m.rows > 0
UNION ALL
SELECT CASE WHEN NOT t.of_all THEN t.canvas_id END, t.minute, t.emitted, t.completed, t.failed, t.retried, t.cancelled,
    t.waits, t.pending, t.oldest_due, false, clock_timestamp()
FROM event_minute_totals t
WHERE t.minute >= date_trunc('minute', now() - $3::interval, 'UTC') AND (t.of_all AND $1 OR NOT t.of_all AND t.canvas_id = ANY ($2))
UNION ALL
SELECT asked.canvas_id, asked.minute, m.emitted, m.completed, m.failed, m.retried, m.cancelled, m.waits, m.pending, m.oldest_due, false, clock_timestamp()
FROM (
    SELECT c.canvas_id, asked.minute
    FROM unnest($2::uuid[]) AS c (canvas_id) CROSS JOIN asked
    WHERE (late OR summed) AND NOT EXISTS (SELECT FROM event_minute_totals t WHERE (t.minute, t.of_all, t.canvas_id) = (asked.minute, false, c.canvas_id))
    OFFSET 0
) AS asked CROSS JOIN LATERAL (
    SELECT count(*) AS rows, ` + minutes.SumsSQL() + `
    FROM event_minutes m WHERE (m.minute, m.canvas_id) = (asked.minute, asked.canvas_id)
) AS m
WHERE m.rows > 0
UNION ALL
SELECT part.canvas_id, asked.minute, 0, 0, 0, 0, 0, '{}', NULL, NULL, true, clock_timestamp()
FROM (SELECT minute FROM asked WHERE NOT late AND NOT summed AND EXISTS (SELECT FROM event_minutes m WHERE m.minute = asked.minute) OFFSET 0) AS asked
CROSS JOIN (SELECT NULL::uuid AS canvas_id WHERE $1 UNION ALL SELECT unnest($2::uuid[])) AS part
ORDER BY 2`

// Totals returns the sums over all handlers for each minute of the time since that has counts, with a zero
// Scope and without Run: those of each of the canvases, and with all those of all canvases, as those of the
// zero Canvas. They are read at one moment, with one statement. Its cost grows with the number of minutes, and with that of the
// rows of those minutes that cron has not summed up yet, of the last two hours at most: a minute before them that has counts
// and no sums is Unsummed.
func (r *Reader) Totals(ctx context.Context, all bool, canvases []eventqueue.CanvasID, since time.Duration) (map[eventqueue.CanvasID][]Minute, error) {
	return r.totals(ctx, totalsSQL, all, uuids(canvases), since, unsummedFor)
}

// totals reads sums of parts, by their time.
func (r *Reader) totals(ctx context.Context, sql string, args ...any) (map[eventqueue.CanvasID][]Minute, error) {
	totals := map[eventqueue.CanvasID][]Minute{}
	rows, err := r.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (none struct{}, err error) {
		var m Minute
		var part *[16]byte
		err = row.Scan(&part, &m.Begins, &m.Emitted, &m.Completed, &m.Failed, &m.Retried, &m.Cancelled, (*[]int64)(&m.Wait), &m.Pending, &m.OldestDue, &m.Unsummed, &m.AsOf)
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

// HourSums are counts of hours that cron has summed up.
type HourSums struct {
	// Of are those of each canvas, with the zero one for all, by time. MinutesOf and Totals have what came later.
	Of map[eventqueue.CanvasID][]Minute
	// Until is when the last hour ended that cron has summed up; zero: it has summed up none of the time that was asked for. Ago is how
	// long ago that was or, of none, the time that was asked for.
	Until time.Time
	Ago   time.Duration
}

// The last hour that is summed up, and how long ago it ended.
func untilSQL(table string) string {
	return `SELECT hour + interval '1 hour', clock_timestamp() - hour - interval '1 hour' FROM ` + table + ` WHERE hour >= (SELECT clock_timestamp() - $1::interval) ORDER BY hour DESC LIMIT 1`
}

// until reads how far a table goes.
func (r *Reader) until(ctx context.Context, table string, since time.Duration) (sums HourSums, err error) {
	sums = HourSums{Of: map[eventqueue.CanvasID][]Minute{}, Ago: since}
	err = r.pool.QueryRow(ctx, untilSQL(table), since).Scan(&sums.Until, &sums.Ago)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return sums, err
}

const hourTotalsSQL = `
SELECT CASE WHEN NOT t.of_all THEN t.canvas_id END, t.hour, t.emitted, t.completed, t.failed, t.retried, t.cancelled, t.waits, t.pending, t.oldest_due, false, clock_timestamp()
FROM generate_series(date_trunc('hour', now() - $3::interval, 'UTC'), now(), '1 hour') AS asked (hour)
CROSS JOIN (SELECT true AS of_all, '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id WHERE $1 UNION ALL SELECT false, unnest($2::uuid[])) AS part
CROSS JOIN LATERAL (
    SELECT * FROM event_hour_totals t WHERE (t.hour, t.of_all, t.canvas_id) = (asked.hour, part.of_all, part.canvas_id) OFFSET 0) AS t
ORDER BY 2`

// HourTotals is Totals for the hours that cron has summed up, of the last eight days at most. It reads a row of each hour and canvas.
func (r *Reader) HourTotals(ctx context.Context, all bool, canvases []eventqueue.CanvasID, since time.Duration) (HourSums, error) {
	sums, err := r.until(ctx, "event_hour_totals", since)
	if err != nil {
		return sums, err
	}
	sums.Of, err = r.totals(ctx, hourTotalsSQL, all, uuids(canvases), since)
	return sums, err
}
