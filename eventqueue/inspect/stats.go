package inspect

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/mayrun"
)

// HandlerStats counts the events and rules of one handler on one canvas.
type HandlerStats struct {
	eventqueue.Scope
	// Depth is how many events have not ended. It is the sum of the counts of the states.
	Depth   int64
	ByState map[State]int64
	// Rules are the types of the rules that hold the handler back, whatever the modifier, each once.
	Rules []operate.RuleType
	// Failed and Cancelled are in event_log.
	Failed, Cancelled int64
	HasDue            bool
	OldestBy          time.Duration // how long the oldest due event that is not running has been due; 0 without HasDue
}

// The three parts are grouped before they are joined, since a handler may occur in one of
// them only. The columns of the states are in the order of States.
var statsSQL = `
WITH clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now, ` + mayrun.ValidForSQL + ` AS valid_for
), queued AS (
    SELECT canvas_id, module, name,` + stateSQL + ` AS state,
        count(*) AS n, min(greatest(e.delay_until, '0001-01-01 00:00Z')) FILTER (WHERE ` + mayrun.DueSQL("e.delay_until", "clock.now") + `) AS due
    FROM clock CROSS JOIN events_v2 e
    ` + ruleJoinSQL + `
    WHERE ` + filterSQL + `
    GROUP BY 1, 2, 3, 4
), depth AS (
    SELECT canvas_id, module, name,
        array_agg(state) AS states, array_agg(n::bigint) AS counts, sum(n)::bigint AS depth,
        min(due) FILTER (WHERE state <> 'running') AS due
    FROM queued GROUP BY 1, 2, 3
), rule AS (
    SELECT canvas_id, event_space AS module, handler_name AS name, array_agg(rule_type) AS types
    FROM scheduling_rules WHERE NOT prefix AND modifier = '' GROUP BY 1, 2, 3
), failed AS (
    SELECT canvas_id, module, name, count(*) FILTER (WHERE status = 'FAILED') AS n, count(*) FILTER (WHERE status = 'CANCELLED') AS cancelled FROM event_log
    WHERE status IN ('FAILED', 'CANCELLED') AND ` + filterSQL + `
    GROUP BY 1, 2, 3
)
SELECT canvas_id, module, name, coalesce(depth, 0), states, counts,
    ARRAY(SELECT unnest(types) UNION ` + prefixTypesSQL + ` ORDER BY 1)::text[],
    coalesce(n, 0), coalesce(cancelled, 0), due, clock.now
FROM (depth
    FULL JOIN rule USING (canvas_id, module, name)
    FULL JOIN failed USING (canvas_id, module, name)) AS handler
CROSS JOIN clock
WHERE ` + filterSQL + `
ORDER BY canvas_id, module, name`

// ruleJoinSQL joins events e with the strongest rule r that holds them back. Rules of whole handlers are joined, which
// is quick for many events, and only if there is another one each event is asked about.
var ruleJoinSQL = `LEFT JOIN (
        SELECT canvas_id, event_space AS module, handler_name AS name, max(rule_type)::text AS rule
        FROM scheduling_rules r WHERE NOT ` + mayrun.NarrowSQL + ` GROUP BY 1, 2, 3
    ) AS whole USING (canvas_id, module, name)
    CROSS JOIN LATERAL (SELECT CASE WHEN ` + mayrun.AnyNarrowSQL + ` THEN ` + mayrun.RuleSQL("e") + ` ELSE whole.rule END AS rule) AS r`

// prefixTypesSQL selects the types of the rules of prefixes that hold back the handler in a row of statsSQL, whatever the modifier.
const prefixTypesSQL = `SELECT r.rule_type FROM scheduling_rules r WHERE ` + mayrun.AnyNarrowSQL + ` AND r.prefix AND r.modifier = ''
        AND (` + mayrun.OfWholeQueueSQL + ` OR r.canvas_id = handler.canvas_id AND r.event_space = handler.module AND starts_with(handler.name, r.handler_name))`

// Stats returns the counts of every handler that has an event, a rule, or a failed or cancelled event.
// It is one statement, which reads the whole queue, unless the filter has a canvas, and all events
// that have failed or were cancelled.
func (r *Reader) Stats(ctx context.Context, filter Filter) ([]HandlerStats, error) {
	rows, err := r.pool.Query(ctx, statsSQL, filter.args()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (h HandlerStats, err error) {
		var states, rules []string
		var counts []int64
		var due *time.Time
		var now time.Time
		err = row.Scan((*[16]byte)(&h.Canvas), &h.Module, &h.Name, &h.Depth, &states, &counts,
			&rules, &h.Failed, &h.Cancelled, &due, &now)
		for _, rule := range rules {
			h.Rules = append(h.Rules, operate.RuleType(rule))
		}
		h.ByState = make(map[State]int64, len(states))
		for i, state := range states {
			h.ByState[State(state)] = counts[i]
		}
		if due != nil {
			h.HasDue, h.OldestBy = true, now.Sub(*due)
		}
		return h, err
	})
}
