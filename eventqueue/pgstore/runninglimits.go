package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

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

// SetRunningLimit implements control.RunningLimitStore.
func (s *Store) SetRunningLimit(ctx context.Context, limit control.RunningLimit) (before bool, err error) {
	sql, args := removeRunningLimitSQL, []any{[16]byte(limit.Canvas), limit.Group()}
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

// RunningLimits implements control.RunningLimitStore.
func (s *Store) RunningLimits(ctx context.Context, canvas eventqueue.CanvasID) ([]control.RunningLimit, error) {
	rows, err := s.pool.Query(ctx, runningLimitsSQL, [16]byte(canvas))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (control.RunningLimit, error) {
		var group string
		var most int
		err := row.Scan(&group, &most)
		return control.LimitOfGroup(canvas, group, most), err
	})
}

// The groups of a limit are read a page at a time, from the one after $3 on; for a limit
// of every key, by jumping along the index from one group to the next. The first event
// that waits in a group with room is passed to events_v2_turns, as one that arrives and
// as one that leaves, in case it was deleted by hand.
const fillGroupsSQL = `
WITH RECURSIVE lines AS (
    SELECT $3::text COLLATE "C" AS line, 0 AS n
    UNION ALL
    SELECT following.line, lines.n + 1
    FROM lines CROSS JOIN LATERAL (
        SELECT p.line FROM event_lines p
        WHERE $2 = '` + control.EveryKeyGroup + `' AND p.canvas_id = $1 AND p.line > greatest(lines.line, '` + control.KeyGroup + `') AND p.line < 'key!'
        ORDER BY p.canvas_id, p.line LIMIT 1
    ) AS following
    WHERE lines.n < $4
), asked AS (
    SELECT line FROM lines WHERE n > 0
    UNION ALL
    SELECT $2::text COLLATE "C" WHERE $2 <> '` + control.EveryKeyGroup + `'
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

// FillGroups implements control.RunningLimitStore.
func (s *Store) FillGroups(ctx context.Context, limit control.RunningLimit, after string) (advanced []eventqueue.Event, next string, err error) {
	err = s.run(ctx, skipping, query{
		forms:     forms{skips: fillGroupsSQL},
		arguments: []any{[16]byte(limit.Canvas), limit.Group(), after, advanceChunk},
		read: func(rows pgx.Rows) error {
			var following, module, name, modifier *string
			var id *eventqueue.EventID
			var canvas *[16]byte
			_, err := pgx.ForEachRow(rows, []any{&following, &id, &canvas, &module, &name, &modifier}, func() error {
				if following != nil {
					next = *following
				}
				if id != nil {
					advanced = append(advanced, eventqueue.Event{ID: *id, Canvas: *canvas, Module: *module, Name: *name, Modifier: *modifier})
				}
				return nil
			})
			return err
		},
	})
	return advanced, next, err
}
