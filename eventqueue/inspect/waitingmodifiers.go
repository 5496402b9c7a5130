package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/mayrun"
)

// The bounds of one search for modifiers: how many events it reads of all handlers together, how many of one, and how
// many of one that had been delayed.
const (
	modifiersRead    = 10_000
	modifiersOfOne   = 500
	modifiersDelayed = 20
)

// waitingModifiersSQL reads the first events of each handler along the index events_v2_handler, and along events_v2_delayed those
// that had been delayed: events that are not due yet may precede these in the former. Ranges of rows, and their order,
// are those of the indexes, so that no other way is as cheap. The first worker has what was found.
var waitingModifiersSQL = `
WITH connected AS MATERIALIZED (` + pgsession.LiveWorkersSQL + `
), clock AS MATERIALIZED (
    SELECT now, ` + mayrun.ValidSinceSQL("now") + ` AS valid FROM (SELECT clock_timestamp() AS now) AS clock
), found AS MATERIALIZED (
    SELECT DISTINCT scope.n, e.modifier
    FROM clock CROSS JOIN unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY AS scope (canvas_id, module, name, n)
    CROSS JOIN LATERAL (
        (SELECT e.modifier, e.delay_until, e.locked_at, e.group_state FROM events_v2 e
         WHERE ` + mayrun.OfHandlerSQL("scope") + `
         ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT $4)
        UNION ALL
        (SELECT e.modifier, e.delay_until, e.locked_at, e.group_state FROM events_v2 e
         WHERE ` + mayrun.DelayedOfHandlerSQL("scope", "clock.now") + `
         ORDER BY e.canvas_id, e.module, e.name, e.delay_until LIMIT $5)
    ) AS e
    WHERE ` + mayrun.DueSQL("e.delay_until", "clock.now") + ` AND ` + mayrun.UnlockedSQL("e.locked_at", "clock.valid") + ` AND ` + mayrun.NotBehindSQL("e.group_state") + `
), waiting AS MATERIALIZED (
    SELECT array_agg(n ORDER BY n, modifier) AS of, array_agg(modifier ORDER BY n, modifier) AS modifiers FROM found
)
SELECT ` + workerColumnsSQL + `,
    CASE WHEN row_number() OVER listed = 1 THEN waiting.of END, CASE WHEN row_number() OVER listed = 1 THEN waiting.modifiers END
FROM event_workers w CROSS JOIN waiting
WINDOW listed AS (ORDER BY w.started_at, w.number)
ORDER BY w.started_at, w.number`

// WaitingModifiers returns what Workers does, and with one and the same statement the modifiers of events of some handlers that are
// due, and that neither run nor wait for others of their ordering group; of no handler, if there is no worker. Its cost is bounded:
// it reads the first 500 events of a handler, and 20 that had been delayed; of many handlers fewer of each, some 10,000 of all.
func (r *Reader) WaitingModifiers(ctx context.Context, scopes ...eventqueue.Scope) (workers []Worker, waiting map[eventqueue.Scope][]string, err error) {
	modules, names, canvases := make([]string, len(scopes)), make([]string, len(scopes)), make([]eventqueue.CanvasID, len(scopes))
	for i, scope := range scopes {
		canvases[i], modules[i], names[i] = scope.Canvas, scope.Module, scope.Name
	}
	share := min(modifiersOfOne, modifiersRead/max(len(scopes), 1))
	rows, err := r.pool.Query(ctx, waitingModifiersSQL, uuids(canvases), modules, names, share, min(share, modifiersDelayed))
	if err != nil {
		return nil, nil, err
	}
	waiting = map[eventqueue.Scope][]string{}
	workers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Worker, error) {
		var of []int64
		var modifiers []string
		w, err := scanWorker(row, &of, &modifiers)
		for i, n := range of {
			scope := scopes[n-1]
			waiting[scope] = append(waiting[scope], modifiers[i])
		}
		return w, err
	})
	return workers, waiting, err
}
