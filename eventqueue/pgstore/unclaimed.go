package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/internal/mayrun"
)

// newestOfScope is how many events of a handler Unclaimed reads beside those that it is asked for:
// others may have emitted since. An event that is further back waits for so many anyway.
const newestOfScope = 10_000

// unclaimedSQL finds events by the time of their insert, which is that of their first notification:
// an event that was notified again since was not lost. It reads no values, which emitters may
// not. Of an ordering group the first one that has not been admitted needs a notification, and those
// that have.
var unclaimedSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), found AS MATERIALIZED (
    SELECT e.id, e.canvas_id, e.group_state, e.ordering_key
    FROM clock CROSS JOIN unnest($1::uuid[], $2::text[], $3::text[], $4::int[], $5::interval[], $6::interval[])
        AS asked (canvas_id, module, name, most, oldest, newest)
    CROSS JOIN LATERAL (
        SELECT e.id, e.canvas_id, e.group_state, e.ordering_key, e.notified_at, e.locked_at FROM events_v2 e
        WHERE ` + mayrun.OfHandlerSQL("asked") + `
        ORDER BY e.canvas_id DESC, e.module DESC, e.name DESC, e.id DESC LIMIT asked.most
    ) AS e
    WHERE e.locked_at IS NULL AND e.notified_at BETWEEN now - asked.oldest AND now - asked.newest
)
SELECT id, canvas_id FROM found WHERE ` + mayrun.NotBehindSQL("group_state") + `
UNION ALL
SELECT min(id), canvas_id FROM found WHERE NOT ` + mayrun.NotBehindSQL("group_state") + ` GROUP BY canvas_id, ordering_key
ORDER BY id`

// Unclaimed implements eventqueue.EmitStore.
func (s *Store) Unclaimed(ctx context.Context, asked []eventqueue.Unanswered) (found []eventqueue.Notification, err error) {
	n := len(asked)
	canvases, modules, names := make([][16]byte, n), make([]string, n), make([]string, n)
	most, oldest, newest := make([]int32, n), make([]time.Duration, n), make([]time.Duration, n)
	for i, a := range asked {
		canvases[i], modules[i], names[i] = a.Canvas, a.Module, a.Name
		most[i], oldest[i], newest[i] = int32(a.Events+newestOfScope), a.Oldest, a.Newest
	}
	err = s.jump(ctx, unclaimedSQL, []any{canvases, modules, names, most, oldest, newest}, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scanNotification)
		return err
	})
	return found, err
}
