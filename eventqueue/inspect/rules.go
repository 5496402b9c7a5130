package inspect

import (
	"context"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

// created_at has no time zone. It is in the zone of the session that wrote it, which is
// the server's zone, as it is for this session.
const listRulesSQL = `
SELECT rule_type::text, canvas_id, module, name, created_at
FROM (SELECT id, rule_type, canvas_id, event_space AS module, handler_name AS name, created_at::timestamptz
      FROM scheduling_rules) AS rule
WHERE ` + filterSQL + `
ORDER BY canvas_id, module, name, rule_type`

// Rules returns the rules that match the filter, ordered by canvas, module, name and
// type.
func (r *Reader) Rules(ctx context.Context, filter Filter) ([]control.Rule, error) {
	return listRules(ctx, r.pool, filter)
}

func listRules(ctx context.Context, db eventqueue.DB, filter Filter) ([]control.Rule, error) {
	rows, err := db.Query(ctx, listRulesSQL, filter.args()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r control.Rule, err error) {
		err = row.Scan(&r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.CreatedAt)
		return r, err
	})
}

const hasEventsSQL = `
SELECT EXISTS (SELECT FROM events_v2 WHERE canvas_id = $1 AND module = $2 AND name = $3)`

// HasEvents reports whether an event of the scope is queued.
func (r *Reader) HasEvents(ctx context.Context, scope eventqueue.Scope) (has bool, err error) {
	err = r.pool.QueryRow(ctx, hasEventsSQL, [16]byte(scope.Canvas), scope.Module, scope.Name).Scan(&has)
	return has, err
}
