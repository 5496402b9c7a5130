package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgsession"
)

const (
	setConcurrencyLimitSQL = `
WITH before AS (
    SELECT FROM concurrency_limits WHERE canvas_id = $1 AND group_key = $2
), written AS (
    INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, $2, $3)
    ON CONFLICT (canvas_id, group_key) DO UPDATE SET max_running = excluded.max_running
)
SELECT EXISTS (SELECT FROM before)`

	removeConcurrencyLimitSQL = `
WITH removed AS (
    DELETE FROM concurrency_limits WHERE canvas_id = $1 AND group_key = $2 RETURNING group_key
)
SELECT EXISTS (SELECT FROM removed)`
)

// SetConcurrencyLimit implements operate.ConcurrencyLimitStore.
func (s *Store) SetConcurrencyLimit(ctx context.Context, limit operate.ConcurrencyLimit) (before bool, err error) {
	sql, args := removeConcurrencyLimitSQL, []any{[16]byte(limit.Canvas), limit.Group()}
	if limit.Max > 0 {
		sql, args = setConcurrencyLimitSQL, append(args, limit.Max)
	}
	if s.by == nil {
		err = s.share.wait(ctx, func() error { return s.pool.QueryRow(ctx, sql, args...).Scan(&before) })
		return before, err
	}
	row := auditedRow{action: "limit", canvas: limit.Canvas, target: map[string]string{"concurrency_limit": limit.Group()}, read: concurrencyLimitAsJSONSQL, args: args[:2]}
	err = s.change(ctx, row, func(tx pgsession.DB) error { return tx.QueryRow(ctx, sql, args...).Scan(&before) })
	return before, err
}

const concurrencyLimitsSQL = `
SELECT group_key, max_running
FROM concurrency_limits
WHERE canvas_id = $1
ORDER BY group_key`

// ConcurrencyLimits implements operate.ConcurrencyLimitStore.
func (s *Store) ConcurrencyLimits(ctx context.Context, canvas eventqueue.CanvasID) ([]operate.ConcurrencyLimit, error) {
	rows, err := s.pool.Query(ctx, concurrencyLimitsSQL, [16]byte(canvas))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (operate.ConcurrencyLimit, error) {
		var group string
		var most int
		err := row.Scan(&group, &most)
		return operate.LimitOfGroup(canvas, group, most), err
	})
}

// The groups of a limit are read a page at a time, from the one after $3 on; for a limit
// of every key, by jumping along the index from one group to the next. The first event
// that waits in a group with room is passed to events_v2_advance, as one that arrives and
// as one that leaves, in case it was deleted by hand.
const fillGroupsSQL = `
WITH RECURSIVE visited AS (
    SELECT $3::text COLLATE "C" AS group_key, 0 AS n
    UNION ALL
    SELECT following.group_key, visited.n + 1
    FROM visited CROSS JOIN LATERAL (
        SELECT g.group_key FROM event_groups g
        WHERE $2 = '` + operate.EveryKeyGroup + `' AND g.canvas_id = $1 AND g.group_key > greatest(visited.group_key, '` + operate.KeyGroup + `') AND g.group_key < 'key!'
        ORDER BY g.canvas_id, g.group_key LIMIT 1
    ) AS following
    WHERE visited.n < $4
), asked AS (
    SELECT group_key FROM visited WHERE n > 0
    UNION ALL
    SELECT $2::text COLLATE "C" WHERE $2 <> '` + operate.EveryKeyGroup + `'
), stalled AS MATERIALIZED (
    SELECT array_agg(first.event_id) AS ids
    FROM asked CROSS JOIN LATERAL (
        SELECT g.event_id, g.stage FROM event_groups g
        WHERE g.canvas_id = $1 AND g.group_key = asked.group_key AND NOT g.admitted
        ORDER BY g.event_id LIMIT 1
    ) AS first
    WHERE ((SELECT count(*) FROM event_groups g WHERE g.canvas_id = $1 AND g.group_key = asked.group_key AND g.admitted)
        < events_v2_max_running(first.stage, $1, asked.group_key)) IS NOT FALSE
), advanced AS (
    SELECT a.* FROM stalled CROSS JOIN LATERAL events_v2_advance(ids, '{}', ids, NULL) AS a WHERE ids IS NOT NULL
)
SELECT (SELECT group_key FROM visited WHERE n = $4), a.id, a.canvas_id, a.module, a.name, a.modifier
FROM (VALUES (1)) AS single_row LEFT JOIN advanced AS a ON true`

// FillGroups implements operate.ConcurrencyLimitStore.
func (s *Store) FillGroups(ctx context.Context, limit operate.ConcurrencyLimit, after string) (advanced []eventqueue.Event, next string, err error) {
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
