package pgstore

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue/minutes"
)

const (
	// completeAfter is how long after the end of a minute or an hour its rows can no longer change: a statement that
	// read the clock in it has ended.
	completeAfter = 2 * time.Minute
	// totalsSince is how far back minutes are summed up: as far as readers do it where there are no sums.
	totalsSince = 2 * time.Hour
	// totalsFor is how long the sums are retained: for a day of an overview, and until the next deletion.
	totalsFor = 26 * time.Hour
	// hourTotalsFor is how long the sums of hours are retained, and how far back hours are summed up: for a week of an overview.
	hourTotalsFor = 8 * 24 * time.Hour
	// totalsPage is how many minutes one statement sums up.
	totalsPage = 10
	// ownTotals is of how many rows in a minute a canvas has sums of its own. Fewer are as quickly read themselves.
	ownTotals = 20
)

// lastCompleteSQL is the last minute that can no longer change, by clock.
func lastCompleteSQL(after string) string {
	return `date_trunc('minute', clock.now - ` + after + `::interval - interval '1 minute', 'UTC')`
}

// unsummedSQL is the first minute that may lack sums, by clock.
func unsummedSQL(since string) string {
	return `greatest(coalesce((SELECT minute + interval '1 minute' FROM event_minute_totals ORDER BY minute DESC LIMIT 1), '-infinity'),
        date_trunc('minute', clock.now - ` + since + `::interval, 'UTC'))`
}

// sumMinutesSQL writes the sums of the next minutes that lack them. They are written in their order, so that all
// minutes up to the last one with sums have them, as readers rely on. Of two programs that do it at once, one writes nothing.
var sumMinutesSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), page AS MATERIALIZED (
    SELECT asked.minute
    FROM clock CROSS JOIN generate_series(` + unsummedSQL("$2") + `, ` + lastCompleteSQL("$1") + `, '1 minute') AS asked (minute)
    WHERE EXISTS (SELECT FROM event_minutes e WHERE e.minute = asked.minute)
    ORDER BY asked.minute LIMIT $3
), sums AS (
    SELECT page.minute, true AS of_all, '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id, ` + minutes.SumsSQL() + `
    FROM page JOIN event_minutes m USING (minute) GROUP BY page.minute
    UNION ALL
    SELECT page.minute, false, m.canvas_id, ` + minutes.SumsSQL() + `
    FROM page JOIN event_minutes m USING (minute) GROUP BY page.minute, m.canvas_id HAVING count(*) >= $4
), written AS (
    INSERT INTO event_minute_totals (minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
    SELECT minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due
    FROM sums ORDER BY minute, of_all, canvas_id
    ON CONFLICT DO NOTHING
    RETURNING true
)
SELECT (SELECT count(*) FROM page) = $3 AND (SELECT count(*) FROM written) >= 0`

// SumMinutes implements maintenance.MinuteStore.
func (s *Store) SumMinutes(ctx context.Context) (more bool, err error) {
	if err := s.pool.QueryRow(ctx, sumMinutesSQL, completeAfter, totalsSince, totalsPage, ownTotals).Scan(&more); err != nil {
		return false, fmt.Errorf("sum up minutes: %w", err)
	}
	return more, nil
}

// sumHourTotalsSQL makes the sums of the first hour of event_hours that has none. Of what was pending, the highest numbers of
// handlers need not be of the same minute: it is summed up by minute.
var sumHourTotalsSQL = `
WITH next AS MATERIALIZED (
    SELECT hour FROM event_hours
    WHERE hour >= (SELECT greatest(clock_timestamp() - $1::interval, (SELECT hour + interval '1 hour' FROM event_hour_totals ORDER BY hour DESC LIMIT 1)))
    ORDER BY hour LIMIT 1
), pending AS MATERIALIZED (
    SELECT e.minute, e.canvas_id, sum(e.pending)::bigint AS n
    FROM next CROSS JOIN LATERAL (
        SELECT minute, canvas_id, pending FROM event_minutes e
        WHERE e.minute >= next.hour AND e.minute < next.hour + interval '1 hour' AND e.pending IS NOT NULL OFFSET 0) AS e
    GROUP BY 1, 2
), highest AS (
    SELECT true AS of_all, '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id, max(n)::bigint AS pending FROM (SELECT sum(n) AS n FROM pending GROUP BY minute) AS p
    UNION ALL
    SELECT false, canvas_id, max(n) FROM pending GROUP BY 2
), sums AS (
    SELECT next.hour, true AS of_all, '00000000-0000-0000-0000-000000000000'::uuid AS canvas_id, ` + minutes.SumsSQL() + `
    FROM next JOIN event_hours m USING (hour) GROUP BY 1
    UNION ALL
    SELECT next.hour, false, m.canvas_id, ` + minutes.SumsSQL() + `
    FROM next JOIN event_hours m USING (hour) GROUP BY 1, 3
), written AS (
    INSERT INTO event_hour_totals (hour, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
    SELECT s.hour, s.of_all, s.canvas_id, s.emitted, s.completed, s.failed, s.retried, s.cancelled, s.waits, h.pending, s.oldest_due
    FROM sums s LEFT JOIN highest h USING (of_all, canvas_id) ORDER BY s.of_all, s.canvas_id
    ON CONFLICT DO NOTHING
    RETURNING true
)
SELECT EXISTS (SELECT FROM next) AND (SELECT count(*) FROM written) >= 0`
