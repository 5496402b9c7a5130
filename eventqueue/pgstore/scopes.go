package pgstore

import "eventsv2/internal/mayrun"

// A statement that goes by handlers jumps along the index events_v2_handler from one scope
// to the next, however many events each has. The jump compares rows, not column by
// column: then no other index has them in order, and none is walked past all events of
// others. The events of one scope are read with mayrun.OfHandlerSQL.

// nextScopeSQL is the first scope after that of a row scopes.
var nextScopeSQL = nextScopeOfSQL("true")

// nextScopeOfSQL is the first one that has an event e for which a condition holds.
func nextScopeOfSQL(condition string) string {
	return `
        (SELECT e.canvas_id, e.module, e.name FROM events_v2 e
         WHERE ` + condition + ` AND (e.canvas_id, e.module, e.name) > (scopes.canvas_id, scopes.module, scopes.name)
         ORDER BY e.canvas_id, e.module, e.name LIMIT 1)`
}

// scopeEndsSQL is scopeEndsOfSQL of all events.
func scopeEndsSQL(columns, limit string) string { return scopeEndsOfSQL("true", columns, limit) }

// scopeEndsOfSQL is, of the events for which a condition holds, so many of the oldest events of a row scopes, and as many of its newest:
// the oldest may all be running, or delayed for long. The newest are read only where there
// are more than the oldest, and none is read twice.
func scopeEndsOfSQL(condition, columns, limit string) string {
	return `
        (SELECT ` + columns + ` FROM events_v2 e
         WHERE ` + condition + ` AND ` + mayrun.OfHandlerSQL("scopes") + `
         ORDER BY e.canvas_id, e.module, e.name, e.id LIMIT ` + limit + `)
        UNION ALL
        (SELECT newest.* FROM (
             SELECT e.id FROM events_v2 e
             WHERE ` + condition + ` AND ` + mayrun.OfHandlerSQL("scopes") + `
             ORDER BY e.canvas_id, e.module, e.name, e.id OFFSET ` + limit + ` - 1 LIMIT 1
         ) AS oldest CROSS JOIN LATERAL (
             SELECT ` + columns + ` FROM events_v2 e
             WHERE ` + condition + ` AND ` + mayrun.OfHandlerSQL("scopes") + ` AND e.id > oldest.id
             ORDER BY e.canvas_id DESC, e.module DESC, e.name DESC, e.id DESC LIMIT ` + limit + `
         ) AS newest)`
}
