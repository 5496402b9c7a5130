package pgstore

import (
	"context"
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// Work is a use of the database, from which Check knows the rights
// that it needs. Each is a role of eventctl migrate roles.
type Work string

// The kinds of work.
const (
	Emitting Work = "emitter" // with the library; events_emit needs less
	Working  Work = "worker"  // runs events, and emits
	Relaying Work = "cron"    // relays, emits the slots of cron definitions, deletes history
)

// needs are the rights without which no program of its kind gets on, by table, sequence or function, and by
// column where the role has no more. Of the functions, those that not everybody may call without eventctl migrate roles. What only some of them need (cleanups, grids,
// notifications in Postgres) is asked for where it is used, and so is what emitters count: an emit
// succeeds without it.
var needs = map[Work]map[string][]string{
	Emitting: {
		"events_v2_lock_keys": {"EXECUTE"}, "events_v2_emit_keyed": {"EXECUTE"}, "events_prioritize": {"EXECUTE"},
		"events_v2": {
			"INSERT (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at, group_state, ordering_key, attributes, parent_id, by_sql, priority)",
			"SELECT (id, canvas_id, module, name, locked_at, notified_at, delay_until, group_state, ordering_key, priority)", "UPDATE (notified_at)",
		},
		"event_groups":  {"INSERT (event_id, stage, canvas_id, group_key)"},
		"events_id_seq": {"USAGE"},
	},
	Working: {
		"events_v2_lock_keys": {"EXECUTE"}, "events_v2_emit_keyed": {"EXECUTE"}, "events_prioritize": {"EXECUTE"}, "events_v2_emit_ending": {"EXECUTE"},
		"events_v2": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_log": {"SELECT", "INSERT"},
		"event_groups": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_group_locks": {"SELECT", "INSERT", "UPDATE"},
		"unique_keys": {"SELECT"}, "unique_heirs": {"SELECT", "INSERT"}, "unique_expiries": {"SELECT", "INSERT", "DELETE"},
		"scheduling_rules": {"SELECT"}, "concurrency_limits": {"SELECT"}, "rate_limits": {"SELECT"}, "rate_counters": {"SELECT", "UPDATE"},
		"claim_barrier": {"SELECT", "UPDATE"}, "event_attempts": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_workers": {"SELECT", "INSERT", "UPDATE"},
		"event_minutes": {"SELECT", "INSERT", "UPDATE"}, "events_id_seq": {"USAGE"},
	},
	Relaying: {
		"events_v2_lock_keys": {"EXECUTE"}, "events_v2_emit_keyed": {"EXECUTE"}, "events_prioritize": {"EXECUTE"},
		"events_v2": {"SELECT", "INSERT", "UPDATE"}, "event_log": {"SELECT", "DELETE"},
		"event_groups": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_group_locks": {"SELECT", "INSERT", "UPDATE"},
		"unique_keys": {"SELECT", "UPDATE", "DELETE"}, "unique_heirs": {"SELECT", "DELETE"}, "unique_expiries": {"SELECT", "DELETE"},
		"scheduling_rules": {"SELECT", "DELETE", "UPDATE (released_to, released_at)"}, "concurrency_limits": {"SELECT"}, "rate_limits": {"SELECT"}, "rate_counters": {"SELECT"},
		"cron_definitions": {"SELECT", "UPDATE"}, "cron_records": {"SELECT", "INSERT", "DELETE"},
		"event_attempts": {"SELECT", "UPDATE", "DELETE"}, "event_workers": {"SELECT", "UPDATE", "DELETE"}, "events_id_seq": {"USAGE"},
		"event_minutes": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_hours": {"SELECT", "INSERT", "UPDATE", "DELETE"},
		"event_minute_totals": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_hour_totals": {"SELECT", "INSERT", "UPDATE", "DELETE"}, "event_emits": {"SELECT", "UPDATE", "DELETE"},
		"webhook_minutes": {"SELECT", "DELETE"}, "webhook_sources": {"SELECT", "DELETE"},
	},
}

// Where no columns are named, a right on one of them counts: what is granted by column
// is not judged here. Which objects and columns do not exist is not a matter of rights.
const lackingSQL = `
WITH needed AS (
    SELECT "table", "right", work, split_part("right", ' ', 1) AS kind,
        CASE "right" WHEN 'EXECUTE' THEN to_regproc($4::text || '.' || "table")::oid ELSE to_regclass($4::text || '.' || "table")::oid END AS object,
        string_to_array(substring("right" FROM '\((.*)\)'), ', ') AS columns
    FROM unnest($1::text[], $2::text[], $3::text[]) AS n ("table", "right", work)
), missing AS (
    SELECT DISTINCT "table" AS name FROM needed WHERE object IS NULL
    UNION
    SELECT "table" || '.' || name FROM needed, unnest(columns) AS name
    WHERE object IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = object AND attname = name)
), lacking AS (
    SELECT * FROM needed
    WHERE CASE WHEN object IS NULL THEN false
        WHEN columns IS NOT NULL THEN EXISTS (
            SELECT FROM pg_attribute WHERE attrelid = object AND attname = ANY (columns) AND NOT has_column_privilege(object, attnum, kind))
        WHEN kind = 'EXECUTE' THEN NOT has_function_privilege(object, kind)
        WHEN kind = 'USAGE' THEN NOT has_sequence_privilege(object, 'USAGE, UPDATE')
        WHEN kind = 'DELETE' THEN NOT has_table_privilege(object, kind)
        ELSE NOT has_any_column_privilege(object, kind) END
)
SELECT quote_ident(current_user), ARRAY(SELECT name FROM missing ORDER BY name),
    ARRAY(SELECT DISTINCT "right" || ' ON ' || CASE kind WHEN 'USAGE' THEN 'SEQUENCE ' WHEN 'EXECUTE' THEN 'FUNCTION ' ELSE '' END || "table" FROM lacking ORDER BY 1), ARRAY(SELECT DISTINCT work FROM lacking ORDER BY 1)`

// checkRights reports whether the user of the pool has the rights that kinds of work
// need. The error, an *eventqueue.UnfitError unless the database could not be reached,
// names what is missing and how to grant it.
func (s *Store) checkRights(ctx context.Context, works []Work) error {
	var tables, rights, kinds []string
	for _, work := range works {
		for table, needed := range needs[work] {
			for _, right := range needed {
				tables, rights, kinds = append(tables, table), append(rights, right), append(kinds, string(work))
			}
		}
	}
	if len(tables) == 0 {
		return nil
	}
	var user string
	var missing, lacking, roles []string
	if err := s.pool.QueryRow(ctx, lackingSQL, tables, rights, kinds, s.pool.Schema.Identifier()).Scan(&user, &missing, &lacking, &roles); err != nil {
		return explain(fmt.Errorf("query the rights of the user: %w", err))
	}
	switch {
	case len(missing) > 0:
		return &eventqueue.UnfitError{Err: fmt.Errorf("the database has no %s, so its schema is older than this program: run eventctl migrate up",
			strings.Join(missing, ", "))}
	case len(lacking) > 0:
		return &eventqueue.UnfitError{Err: fmt.Errorf("the user %s of the database lacks %s: as the owner of the schema run eventctl migrate roles, "+
			"and grant the role for this kind of program (%s) to %s, or GRANT %s TO %s",
			user, strings.Join(lacking, ", "), strings.Join(roles, ", "), user, lacking[0], user)}
	default:
		return nil
	}
}

// CheckWorker implements worker.Fitness.
func (s *Store) CheckWorker(ctx context.Context) error { return s.Check(ctx, Working) }
