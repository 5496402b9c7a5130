package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// created_at has no time zone. It is in the zone of the session that wrote it, which is
// the server's zone, as it is for this session. A row that was written by SQL can have times
// of any year; they are cut to what Go can read and JSON has, so that no row keeps the others
// from being read.
const listRulesSQL = `
SELECT rule_type::text, canvas_id, module, name, modifier, prefix, reason, actor, until, created_at,
    coalesce(rate, 0), coalesce(greatest(released_to, 0), 0), released_at
FROM (SELECT id, rule_type, canvas_id, event_space AS module, handler_name AS name, modifier, prefix, reason, actor, rate, released_to,
          least(greatest(released_at, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS released_at,
          least(greatest(until, '0001-01-01 00:00Z'), '9999-12-31 00:00Z') AS until,
          least(greatest(created_at, '0001-01-01 12:00'), '9999-12-30 12:00')::timestamptz AS created_at
      FROM scheduling_rules) AS rule
WHERE ` + filterSQL + ` OR canvas_id = '00000000-0000-0000-0000-000000000000' AND module = '' AND prefix AND name = ''
ORDER BY canvas_id, module, name, prefix, modifier, rule_type`

// Rules returns the rules that match the filter, with the very name that it has, also where that is a prefix, ordered by
// canvas, module, name, modifier and type. One of the whole queue matches every filter.
func (r *Reader) Rules(ctx context.Context, filter Filter) ([]operate.Rule, error) {
	return listRules(ctx, r.pool, filter)
}

func listRules(ctx context.Context, db eventqueue.DB, filter Filter) ([]operate.Rule, error) {
	rows, err := db.Query(ctx, listRulesSQL, filter.args()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r operate.Rule, err error) {
		var until, released *time.Time
		err = row.Scan(&r.Type, (*[16]byte)(&r.Canvas), &r.Module, &r.Name, &r.Modifier, &r.Prefix, &r.Reason, &r.Actor, &until, &r.CreatedAt,
			&r.Rate, &r.ReleasedTo, &released)
		if released != nil {
			r.ReleasedAt = *released
		}
		if until != nil {
			r.Until = *until
		}
		return r, err
	})
}

// RulesAbout returns the rules that can hold back an event that a rule of the scope holds back, in the order of
// Rules.
func (r *Reader) RulesAbout(ctx context.Context, scope operate.RuleScope) ([]operate.Rule, error) {
	rules, err := listRules(ctx, r.pool, Filter{Canvas: &scope.Canvas, Module: scope.Module})
	return slices.DeleteFunc(rules, func(rule operate.Rule) bool { return !rule.Overlaps(scope) }), err
}

// rulesOf returns the rules that hold back an event.
func rulesOf(ctx context.Context, db eventqueue.DB, e *eventqueue.Event) ([]operate.Rule, error) {
	rules, err := listRules(ctx, db, Filter{Canvas: &e.Canvas, Module: e.Module})
	return slices.DeleteFunc(rules, func(rule operate.Rule) bool { return !rule.Holds(e) }), err
}

const hasEventsSQL = `
SELECT EXISTS (SELECT FROM events_v2 WHERE canvas_id = $1 AND module = $2 AND name = $3 AND ($4 = '' OR modifier = $4))`

// HasEvents reports whether an event of the handler is queued, with the modifier or, without one, with any.
func (r *Reader) HasEvents(ctx context.Context, scope eventqueue.Scope, modifier string) (has bool, err error) {
	err = r.pool.QueryRow(ctx, hasEventsSQL, [16]byte(scope.Canvas), scope.Module, scope.Name, modifier).Scan(&has)
	return has, err
}

// RuleThere returns the rule of the same identity that the database has. One that was lifted meanwhile is returned as it was
// asked for.
func (r *Reader) RuleThere(ctx context.Context, rule operate.Rule) (operate.Rule, error) {
	rules, err := r.RulesAbout(ctx, rule.RuleScope)
	for _, there := range rules {
		if there.Type == rule.Type && there.RuleScope == rule.RuleScope {
			return there, nil
		}
	}
	return rule, err
}
