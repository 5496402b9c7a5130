package pgstore

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
)

// How events_v2_line spells lines; every key has one more.
const (
	canvasLine    = "canvas"
	handlerLine   = "handler "
	keyLine       = "key "
	everyKeyLine  = "keys"
	handlerBreaks = "\x1f" // between module and name
)

// lineOf is the line that a limit is for.
func lineOf(l eventqueue.RunningLimit) string {
	switch {
	case l.EveryKey:
		return everyKeyLine
	case l.Key != "":
		return keyLine + l.Key
	case l.Module != "":
		return handlerLine + l.Module + handlerBreaks + l.Name
	default:
		return canvasLine
	}
}

// limitOf is the other way round.
func limitOf(canvas eventqueue.CanvasID, line string, most int) eventqueue.RunningLimit {
	limit := eventqueue.RunningLimit{Canvas: canvas, EveryKey: line == everyKeyLine, Max: most}
	if handler, is := strings.CutPrefix(line, handlerLine); is {
		limit.Module, limit.Name, _ = strings.Cut(handler, handlerBreaks)
	}
	if key, is := strings.CutPrefix(line, keyLine); is {
		limit.Key = key
	}
	return limit
}

const (
	setRunningLimitSQL = `
WITH before AS (
    SELECT FROM running_limits WHERE canvas_id = $1 AND line = $2
), written AS (
    INSERT INTO running_limits (canvas_id, line, max_running) VALUES ($1, $2, $3)
    ON CONFLICT (canvas_id, line) DO UPDATE SET max_running = excluded.max_running
)
SELECT EXISTS (SELECT FROM before)`

	removeRunningLimitSQL = `
WITH removed AS (
    DELETE FROM running_limits WHERE canvas_id = $1 AND line = $2 RETURNING line
)
SELECT EXISTS (SELECT FROM removed)`
)

// SetRunningLimit implements eventqueue.RunningLimitStore.
func (s *Store) SetRunningLimit(ctx context.Context, limit eventqueue.RunningLimit) (before bool, err error) {
	sql, args := removeRunningLimitSQL, []any{[16]byte(limit.Canvas), lineOf(limit)}
	if limit.Max > 0 {
		sql, args = setRunningLimitSQL, append(args, limit.Max)
	}
	err = s.pool.QueryRow(ctx, sql, args...).Scan(&before)
	return before, err
}

const runningLimitsSQL = `
SELECT line, max_running
FROM running_limits
WHERE canvas_id = $1
ORDER BY line`

// RunningLimits implements eventqueue.RunningLimitStore.
func (s *Store) RunningLimits(ctx context.Context, canvas eventqueue.CanvasID) ([]eventqueue.RunningLimit, error) {
	rows, err := s.pool.Query(ctx, runningLimitsSQL, [16]byte(canvas))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (eventqueue.RunningLimit, error) {
		var line string
		var most int
		err := row.Scan(&line, &most)
		return limitOf(canvas, line, most), err
	})
}

// The lines of a limit, from the one after $3 on, a page at a time: for every key,
// jumping along the index from one to the next. The first that wait in them, where
// there is room, arrive once more; or have left, if somebody has deleted them.
const fillLinesSQL = `
WITH RECURSIVE lines AS (
    SELECT $3::text COLLATE "C" AS line, 0 AS n
    UNION ALL
    SELECT following.line, lines.n + 1
    FROM lines CROSS JOIN LATERAL (
        SELECT p.line FROM event_lines p
        WHERE $2 = '` + everyKeyLine + `' AND p.canvas_id = $1 AND p.line > greatest(lines.line, '` + keyLine + `') AND p.line < 'key!'
        ORDER BY p.canvas_id, p.line LIMIT 1
    ) AS following
    WHERE lines.n < $4
), asked AS (
    SELECT line FROM lines WHERE n > 0
    UNION ALL
    SELECT $2::text COLLATE "C" WHERE $2 <> '` + everyKeyLine + `'
), stalled AS MATERIALIZED (
    SELECT array_agg(first.event_id) AS ids
    FROM asked CROSS JOIN LATERAL (
        SELECT p.event_id, p.stage FROM event_lines p
        WHERE p.canvas_id = $1 AND p.line = asked.line AND NOT p.turn
        ORDER BY p.event_id LIMIT 1
    ) AS first
    WHERE ((SELECT count(*) FROM event_lines p WHERE p.canvas_id = $1 AND p.line = asked.line AND p.turn)
        < events_v2_max_running(first.stage, $1, asked.line)) IS NOT FALSE
), turns AS (
    SELECT t.* FROM stalled CROSS JOIN LATERAL events_v2_turns(ids, '{}', ids, NULL) AS t WHERE ids IS NOT NULL
)
SELECT (SELECT line FROM lines WHERE n = $4), t.id, t.canvas_id, t.module, t.name, t.modifier
FROM (VALUES (1)) AS one LEFT JOIN turns AS t ON true`

// FillLines implements eventqueue.RunningLimitStore.
func (s *Store) FillLines(ctx context.Context, limit eventqueue.RunningLimit, after string) (turns []eventqueue.Event, next string, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: fillLinesSQL},
		arguments: []any{[16]byte(limit.Canvas), lineOf(limit), after, turnsChunk},
		read: func(rows pgx.Rows) error {
			var following, module, name, modifier *string
			var id *eventqueue.EventID
			var canvas *[16]byte
			_, err := pgx.ForEachRow(rows, []any{&following, &id, &canvas, &module, &name, &modifier}, func() error {
				if following != nil {
					next = *following
				}
				if id != nil {
					turns = append(turns, eventqueue.Event{ID: *id, Canvas: *canvas, Module: *module, Name: *name, Modifier: *modifier})
				}
				return nil
			})
			return err
		},
	})
	return turns, next, err
}
