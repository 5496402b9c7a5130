package inspect

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

const (
	// pageRows is of about how many rows of counts a page of counts is made.
	pageRows = 8_000
	// pageHandlers is of how many handlers at least each minute or hour is read for the end of a page. All of them would be
	// a hundred thousand rows for a day of a large canvas.
	pageHandlers = 150
)

// A page of counts has all counts of some handlers of a canvas, which is $1: those that come after $5 and $6, by module and
// name, and, but for pageKeysSQL, up to $7 and $8. Of each time its rows are a range of the index, so that those of other
// canvases and of other pages are not read.
const (
	pageOfSQL = `m.canvas_id = $1 AND ($2::text = '' OR m.module = $2) AND ($3::text = '' OR m.name = $3) AND (m.module, m.name) > ($5, $6)`
	upToSQL   = ` AND (m.module, m.name) <= ($7, $8)`

	pageColumns = `e.canvas_id, e.module, e.name, e.emitted, e.completed, e.failed, e.retried, e.cancelled, e.waits, e.runs, e.pending, e.oldest_due, clock_timestamp()`
)

func inMinutesSQL(columns string) string {
	return `generate_series(date_trunc('minute', clock_timestamp() - $4::interval, 'UTC'), clock_timestamp(), '1 minute') AS asked (begins)
    CROSS JOIN LATERAL (SELECT ` + columns + ` FROM event_minutes m WHERE m.minute = asked.begins AND ` + pageOfSQL
}

func inHoursSQL(columns string) string {
	return `generate_series(date_trunc('hour', clock_timestamp() - $4::interval, 'UTC'), clock_timestamp(), '1 hour') AS asked (begins)
    CROSS JOIN LATERAL (SELECT ` + columns + ` FROM event_hours m WHERE m.hour = asked.begins AND ` + pageOfSQL
}

// inLatestSQL are the hours of minutes that have not been summed up.
func inLatestSQL(columns string) string {
	return `generate_series(greatest(date_trunc('hour', clock_timestamp() - $4::interval, 'UTC'),
        (SELECT hour + interval '1 hour' FROM event_hours ORDER BY hour DESC LIMIT 1)), clock_timestamp(), '1 minute') AS asked (begins)
    CROSS JOIN LATERAL (SELECT ` + columns + ` FROM event_minutes m WHERE m.minute = asked.begins AND ` + pageOfSQL
}

var (
	minutesPageSQL = `
SELECT asked.begins, ` + pageColumns + ` FROM ` + inMinutesSQL("m.*") + upToSQL + `) AS e
ORDER BY 1, 2, 3, 4`
	hoursPageSQL = `
SELECT asked.begins, ` + pageColumns + ` FROM ` + inHoursSQL("m.*") + upToSQL + `) AS e
UNION ALL
SELECT date_trunc('hour', asked.begins, 'UTC'), ` + pageColumns + ` FROM ` + inLatestSQL("m.*") + upToSQL + `) AS e
ORDER BY 1, 2, 3, 4`
)

// pageKeysSQL finds the last handler of a page, and whether there are others after it: a page has handlers while
// those before have fewer than $7 rows. Of each time the first $8 handlers are read and one more, with which
// the handlers begin whose rows were not all seen.
func pageKeysSQL(times ...func(columns string) string) string {
	seen := make([]string, len(times))
	for i, rows := range times {
		seen[i] = `SELECT e.module, e.name, e.nth FROM ` + rows(`m.module, m.name, row_number() OVER (ORDER BY m.module, m.name) AS nth`) +
			` ORDER BY m.module, m.name LIMIT $8::bigint + 1) AS e`
	}
	return `
WITH seen AS MATERIALIZED (` + strings.Join(seen, " UNION ALL ") + `
), cut AS MATERIALIZED (
    SELECT module, name FROM seen WHERE nth > $8 ORDER BY module, name LIMIT 1
), handlers AS (
    SELECT seen.module, seen.name, count(*) AS n FROM seen LEFT JOIN cut ON true
    WHERE cut.module IS NULL OR (seen.module, seen.name) < (cut.module, cut.name)
    GROUP BY seen.module, seen.name
)
SELECT module, name, further FROM (
    SELECT module, name, sum(n) OVER ordered - n AS before, lead(true, 1, EXISTS (SELECT FROM cut)) OVER ordered AS further
    FROM handlers WINDOW ordered AS (ORDER BY module, name)
) AS handlers
WHERE before < $7 ORDER BY module DESC, name DESC LIMIT 1`
}

var (
	minutesPageKeysSQL = pageKeysSQL(inMinutesSQL)
	hoursPageKeysSQL   = pageKeysSQL(inHoursSQL, inLatestSQL)
)

// MinutesPage is Minutes for the handlers of a canvas that come after one, by module and name: of as many as have about
// 8,000 rows of counts together, or fewer, and of at least one. The canvas is that of filter. It returns the last of these handlers
// if there are further ones, and nil if not.
func (r *Reader) MinutesPage(ctx context.Context, filter Filter, since time.Duration, resolution Resolution, after eventqueue.Scope) (page []Minute, last *eventqueue.Scope, err error) {
	if resolution == PerMinute && filter.Module != "" && filter.Name != "" {
		page, err = r.MinutesOf(ctx, since, eventqueue.Scope{Canvas: *filter.Canvas, Module: filter.Module, Name: filter.Name})
		return page, nil, err
	}
	keysSQL, pageSQL, times := minutesPageKeysSQL, minutesPageSQL, since/time.Minute
	if resolution == PerHour {
		keysSQL, pageSQL, times = hoursPageKeysSQL, hoursPageSQL, since/time.Hour
	}
	type key struct {
		eventqueue.Scope
		further bool
	}
	keys, err := walked(ctx, r, func(row pgx.CollectableRow) (k key, err error) {
		k.Canvas = *filter.Canvas
		return k, row.Scan(&k.Module, &k.Name, &k.further)
	}, keysSQL, filter.args(since, after.Module, after.Name, pageRows, max(pageHandlers, pageRows/(int64(times)+1)))...)
	if err != nil || len(keys) == 0 {
		return nil, nil, err
	}
	page, err = walked(ctx, r, scanMinute, pageSQL, filter.args(since, after.Module, after.Name, keys[0].Module, keys[0].Name)...)
	if err != nil {
		return nil, nil, err
	}
	if keys[0].further {
		last = &keys[0].Scope
	}
	return mergeNeighbours(page), last, nil
}
