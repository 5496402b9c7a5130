package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/mayrun"
)

// How many scopes one search for runnable events visits, and how many events it
// reads from either end of each.
const (
	runnableScopes = 64
	runnableEvents = 32
)

// runnableSQL is that of all events, and runnablePrioritySQL of those of the priority $7, which stand in the index
// events_v2_priority.
var (
	runnableSQL         = runnableOfSQL("true")
	runnablePrioritySQL = runnableOfSQL("e.priority = $7::event_priority")
)

// runnableOfSQL goes by scopes, and jumps past a canvas that is left out, however many events
// it has.
func runnableOfSQL(condition string) string {
	return `
WITH RECURSIVE clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), scopes AS (
    SELECT $1::uuid AS canvas_id, $2::text AS module, $3::text AS name, 0 AS n
    UNION ALL
    SELECT following.canvas_id, following.module, following.name, scopes.n + 1
    FROM scopes CROSS JOIN LATERAL (
        (SELECT e.canvas_id, e.module, e.name FROM events_v2 e
         WHERE ` + condition + ` AND scopes.canvas_id = ANY ($4::uuid[]) AND e.canvas_id > scopes.canvas_id
         ORDER BY e.canvas_id, e.module, e.name LIMIT 1)
        UNION ALL
        (SELECT * FROM (` + nextScopeOfSQL(condition) + `) AS e WHERE scopes.canvas_id <> ALL ($4::uuid[]))
    ) AS following
    WHERE scopes.n < $5
), progress AS (
    SELECT canvas_id, module, name FROM scopes WHERE n = $5
), runnable AS (
    SELECT e.*
    FROM clock CROSS JOIN scopes CROSS JOIN LATERAL (` +
		scopeEndsOfSQL(condition, "e.id, e.canvas_id, e.module, e.name, e.modifier, e.delay_until, e.locked_at, e.group_state", "$6") + `
    ) AS e
    WHERE scopes.n > 0 AND scopes.canvas_id <> ALL ($4::uuid[])
      AND NOT ` + mayrun.HandlerRuledSQL("scopes") + ` AND NOT ` + mayrun.NarrowlyRuledSQL("e") + `
      AND ` + mayrun.NotBehindSQL("group_state") + ` AND ` + mayrun.DueSQL("delay_until", "now") + ` AND ` + mayrun.UnlockedSQL("locked_at", mayrun.ValidSinceSQL("now")) + `
)
SELECT progress.canvas_id, progress.module, progress.name,
    runnable.id, runnable.canvas_id, runnable.module, runnable.name, runnable.modifier
FROM (VALUES (1)) AS single_row LEFT JOIN progress ON true LEFT JOIN runnable ON true
ORDER BY runnable.id`
}

// runnableMode has each search planned anew: a plan that was made while the table
// was small would read and sort all of it when it has grown.
const runnableMode = pgx.QueryExecModeCacheDescribe

// Runnable implements worker.Store.
func (s *Store) Runnable(ctx context.Context, after eventqueue.Scope, except []eventqueue.CanvasID) ([]eventqueue.Event, eventqueue.Scope, error) {
	left := make([][16]byte, len(except))
	for i, canvas := range except {
		left[i] = canvas
	}
	return s.runnable(ctx, runnableSQL, [16]byte(after.Canvas), after.Module, after.Name, left, runnableScopes, runnableEvents)
}

// RunnablePriority implements worker.Store.
func (s *Store) RunnablePriority(ctx context.Context, priority string, after eventqueue.Scope, most int) ([]eventqueue.Event, eventqueue.Scope, error) {
	return s.runnable(ctx, runnablePrioritySQL, [16]byte(after.Canvas), after.Module, after.Name, [][16]byte{}, runnableScopes, min(most, runnableEvents), priority)
}

func (s *Store) runnable(ctx context.Context, sql string, arguments ...any) ([]eventqueue.Event, eventqueue.Scope, error) {
	rows, err := s.pool.Query(ctx, sql, append([]any{runnableMode}, arguments...)...)
	if err != nil {
		return nil, eventqueue.Scope{}, err
	}
	var (
		events                []eventqueue.Event
		nextCanvas            *[16]byte
		nextModule, nextName  *string
		id                    *eventqueue.EventID
		canvas                *[16]byte
		module, name, variant *string
	)
	_, err = pgx.ForEachRow(rows, []any{&nextCanvas, &nextModule, &nextName, &id, &canvas, &module, &name, &variant}, func() error {
		if id != nil {
			events = append(events, eventqueue.Event{ID: *id, Canvas: *canvas, Module: *module, Name: *name, Modifier: *variant})
		}
		return nil
	})
	if err != nil || nextCanvas == nil {
		return events, eventqueue.Scope{}, err
	}
	return events, eventqueue.Scope{Canvas: *nextCanvas, Module: *nextModule, Name: *nextName}, nil
}
