package pgstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
)

// MinuteScopes bounds the rows of a minute, and of an hour: so many are of handlers on canvases,
// and as many of handlers on all further canvases.
const MinuteScopes = 1000

// mergeCountsSQL makes the rows of event_minutes or event_hours from the rows of given: those of
// one scope have the same place, by which the first get rows of their own. room says how many
// scopes, and how many handlers, may have new rows; there, whether a row exists.
//
//   - placed is where each place goes if all handlers have room, and overflow the handlers for
//     which there is none.
//   - buckets are the sums of the histograms, which are as long as their last element demands.
const mergeCountsSQL = `, numbered AS (
    SELECT DISTINCT place, canvas_id, module, name, there,
        dense_rank() OVER (PARTITION BY there, canvas_id = '00000000-0000-0000-0000-000000000000' ORDER BY place) AS n
    FROM given
), placed AS MATERIALIZED (
    SELECT place, module, name, CASE WHEN there OR n <= room.scopes THEN canvas_id ELSE '00000000-0000-0000-0000-000000000000' END AS canvas_id
    FROM numbered CROSS JOIN room
), handlers AS (
    SELECT module, name, row_number() OVER (ORDER BY min(place)) AS n
    FROM placed WHERE canvas_id = '00000000-0000-0000-0000-000000000000' AND module <> ''
      AND (canvas_id, module, name) NOT IN (SELECT canvas_id, module, name FROM given WHERE there)
    GROUP BY module, name
), overflow AS (
    SELECT module, name, true AS over FROM handlers CROSS JOIN room WHERE n > room.handlers
), counted AS MATERIALIZED (
    SELECT p.canvas_id, CASE WHEN o.over THEN '' ELSE g.module END AS module, CASE WHEN o.over THEN '' ELSE g.name END AS name,
        g.emitted, g.completed, g.failed, g.retried, g.cancelled, g.waits, g.runs, g.pending, g.oldest_due, p.canvas_id = g.canvas_id AS own
    FROM given g JOIN placed p USING (place)
    LEFT JOIN overflow o ON p.canvas_id = '00000000-0000-0000-0000-000000000000' AND (o.module, o.name) = (g.module, g.name)
), buckets AS (
    SELECT canvas_id, module, name, of_waits, i, sum(n)::bigint AS n
    FROM counted CROSS JOIN LATERAL (
        SELECT true AS of_waits, w.n, w.i FROM unnest(waits) WITH ORDINALITY AS w (n, i)
        UNION ALL
        SELECT false, r.n, r.i FROM unnest(runs) WITH ORDINALITY AS r (n, i)
    ) AS histogram
    GROUP BY 1, 2, 3, 4, 5
), histograms AS (
    SELECT canvas_id, module, name,
        array_agg(n ORDER BY i) FILTER (WHERE of_waits) AS waits, array_agg(n ORDER BY i) FILTER (WHERE NOT of_waits) AS runs
    FROM buckets GROUP BY 1, 2, 3
), merged AS (
    SELECT canvas_id, module, name, sum(emitted)::bigint AS emitted, sum(completed)::bigint AS completed, sum(failed)::bigint AS failed,
        sum(retried)::bigint AS retried, sum(cancelled)::bigint AS cancelled, max(pending) FILTER (WHERE own) AS pending, max(oldest_due) FILTER (WHERE own) AS oldest_due
    FROM counted GROUP BY 1, 2, 3
)`

// Rows are written in the order of their key, so that no two programs wait for each other.
const mergedColumnsSQL = `m.canvas_id, m.module, m.name, m.emitted, m.completed, m.failed, m.retried, m.cancelled, coalesce(h.waits, '{}'), coalesce(h.runs, '{}')`

// sumSQL is the sum of a histogram of the row that exists and the one that is added.
func sumSQL(column string) string {
	return column + ` = ARRAY(SELECT coalesce(u.a, 0) + coalesce(u.b, 0)
        FROM unnest(e.` + column + `, excluded.` + column + `) WITH ORDINALITY AS u (a, b, i) ORDER BY u.i)`
}

// addCountsSQL adds the rows of counted_now, a query that is named in a WITH before it, to the current minute, of which $1 scopes and as many
// handlers have rows.
//
// present counts the rows of the minute that programs have written, no more of them than there may
// be. Programs that hand in at the same moment do not see each other's.
var addCountsSQL = `, clock AS MATERIALIZED (
    SELECT now, date_trunc('minute', now, 'UTC') AS minute FROM (SELECT clock_timestamp() AS now) AS clock
), given AS MATERIALIZED (
    SELECT g.place, g.canvas_id, g.module, g.name, g.emitted, g.completed, g.failed, g.retried, g.cancelled, g.waits::bigint[] AS waits, g.runs::bigint[] AS runs,
        NULL::bigint AS pending, NULL::interval AS oldest_due,
        EXISTS (SELECT FROM event_minutes e WHERE (e.minute, e.canvas_id, e.module, e.name) = (clock.minute, g.canvas_id, g.module, g.name)) AS there
    FROM clock CROSS JOIN counted_now g
), room AS MATERIALIZED (
    SELECT greatest($1 - count(*), 0) AS scopes, least($1, greatest(2 * $1 - count(*), 0)) AS handlers
    FROM (SELECT FROM clock JOIN event_minutes e USING (minute)
          WHERE e.emitted + e.completed + e.failed + e.retried + e.cancelled > 0 LIMIT 2 * $1) AS present
)` + mergeCountsSQL + `, written AS (
    INSERT INTO event_minutes AS e (minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs)
    SELECT clock.minute, ` + mergedColumnsSQL + `
    FROM clock CROSS JOIN merged m LEFT JOIN histograms h USING (canvas_id, module, name)
    ORDER BY m.canvas_id, m.module, m.name
    ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET emitted = e.emitted + excluded.emitted,
        completed = e.completed + excluded.completed, failed = e.failed + excluded.failed, retried = e.retried + excluded.retried,
        cancelled = e.cancelled + excluded.cancelled,
        ` + sumSQL("waits") + `,
        ` + sumSQL("runs") + `
    RETURNING true
)`

var (
	addMinutesSQL = `
WITH counted_now AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::text[])
        WITH ORDINALITY AS g (canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, runs, place)
)` + addCountsSQL + `
SELECT now FROM clock WHERE (SELECT count(*) FROM written) >= 0`

	// Of two relays that do it at once, each takes other rows.
	countEmitsSQL = `
WITH found AS MATERIALIZED (
    SELECT e.ctid AS version FROM event_emits e LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM event_emits e WHERE e.ctid = ANY (ARRAY(SELECT version FROM found)) RETURNING e.canvas_id, e.module, e.name
), counted_now AS (
    SELECT canvas_id, module, name, count(*) AS emitted, 0 AS completed, 0 AS failed, 0 AS retried, 0 AS cancelled, '{}' AS waits, '{}' AS runs,
        row_number() OVER (ORDER BY count(*) DESC, canvas_id, module, name) AS place
    FROM gone GROUP BY canvas_id, module, name
)` + addCountsSQL + `
SELECT (SELECT count(*) FROM gone) = $2 AND (SELECT count(*) FROM written) >= 0`
)

// NewCounter implements eventqueue.CountingStore.
func (s *Store) NewCounter(jitter func(time.Duration) time.Duration, log *zap.Logger) eventqueue.Counter {
	return minutes.New(s, jitter, log)
}

// AddMinutes implements minutes.Store.
func (s *Store) AddMinutes(ctx context.Context, counts []minutes.Counts) (now time.Time, err error) {
	n := len(counts)
	canvases, modules, names := make([][16]byte, n), make([]string, n), make([]string, n)
	emitted, completed, failed, retried, cancelled := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	waits, runs := make([]string, n), make([]string, n)
	for i := range counts {
		c := &counts[i]
		canvases[i], modules[i], names[i] = c.Canvas, c.Module, c.Name
		emitted[i], completed[i], failed[i], retried[i], cancelled[i] = c.Emitted, c.Completed, c.Failed, c.Retried, c.Cancelled
		waits[i], runs[i] = arrayText(c.Wait), arrayText(c.Run)
	}
	err = s.pool.QueryRow(ctx, addMinutesSQL, MinuteScopes, canvases, modules, names, emitted, completed, failed, retried, cancelled, waits, runs).Scan(&now)
	if err != nil {
		return time.Time{}, fmt.Errorf("add the counts of a minute: %w", err)
	}
	return now, nil
}

// emitsPage is how many events one statement counts.
const emitsPage = 20_000

// CountEmits implements maintenance.MinuteStore.
func (s *Store) CountEmits(ctx context.Context) (more bool, err error) {
	if err := s.pool.QueryRow(ctx, countEmitsSQL, MinuteScopes, emitsPage).Scan(&more); err != nil {
		return false, fmt.Errorf("count what SQL has emitted: %w", err)
	}
	return more, nil
}

// arrayText is a histogram as the text of an array: an array of arrays of several lengths is none
// that Postgres knows.
func arrayText(h minutes.Histogram) string {
	return "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint([]int64(h)), " ", ","), "[]") + "}"
}
