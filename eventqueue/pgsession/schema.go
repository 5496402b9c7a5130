package pgsession

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// schemaSQL finds the schema of the first events_v2 on the search path, the tables of the
// queue that the path finds elsewhere, and the path. to_regclass follows the search path, as the
// statements of the queue do, and needs no privilege on a table. The tables of the first
// versions are in every queue; others are missing where the schema is older than this program.
const schemaSQL = `
SELECT coalesce(home.relnamespace::regnamespace::text, ''), coalesce(string_agg(t.name, ', ' ORDER BY t.name) FILTER (
        WHERE there.relnamespace <> home.relnamespace OR t.oldest AND there.oid IS NULL), ''), current_setting('search_path')
FROM (SELECT 1) AS one
LEFT JOIN pg_class home ON home.oid = to_regclass('events_v2')
CROSS JOIN (
    SELECT name, true FROM unnest(ARRAY['scheduling_rules', 'event_log', 'eventsv2_schema_version']) AS name
    UNION ALL
    SELECT name, false FROM unnest(ARRAY['cron_definitions', 'cron_records', 'events_v2_notifications', 'unique_keys', 'unique_expiries',
        'concurrency_limits', 'event_groups', 'cleanups', 'grid_outputs', 'rate_limits', 'rate_counters', 'claim_barrier', 'event_group_locks',
        'events_v2_settings', 'events_id_seq', 'scheduling_rules_id_seq']) AS name) AS t (name, oldest)
LEFT JOIN pg_class there ON there.oid = to_regclass(t.name)
GROUP BY 1`

// CheckSchema returns an error unless the search path leads to the tables of exactly
// one queue: if several schemas have tables, the search path decides which are used.
func CheckSchema(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) error {
	var schema, elsewhere, path string
	if err := db.QueryRow(ctx, schemaSQL).Scan(&schema, &elsewhere, &path); err != nil {
		return fmt.Errorf("find the tables of the queue: %w", err)
	}
	switch {
	case schema == "":
		return fmt.Errorf("there is no table events_v2 on the search path %q: "+
			"run eventctl migrate up, or set search_path in the database URL to the schema of the queue", path)
	case elsewhere != "":
		return fmt.Errorf("the search path %q finds events_v2 in the schema %s, and not there: %s: "+
			"set search_path in the database URL, or on the role, to the schema of the queue alone", path, schema, elsewhere)
	}
	return nil
}

// SearchPath returns the search path of a connection. It takes one round trip.
func SearchPath(ctx context.Context, conn *pgconn.PgConn) (string, error) {
	path, err := queryValue(ctx, conn, `SHOW search_path`)
	if err != nil {
		return "", fmt.Errorf("ask for the search path of the connection: %w", err)
	}
	return path, nil
}

const ownSchemaSQL = `
SELECT concat_ws(' ', 'the search path "' || current_setting('search_path') || '" leads to the tables of the queue in the schema', relnamespace::regnamespace,
    'and would make others in the schema', quote_ident(current_schema()))
FROM pg_class WHERE oid = ANY (ARRAY[to_regclass('events_v2'), to_regclass('eventsv2_schema_version')]) AND relnamespace <> to_regnamespace(quote_ident(current_schema()))`

// CheckOwnSchema returns an error if what is created on the connection, as by a migration, would
// not be in the schema in which the search path finds the queue.
func CheckOwnSchema(ctx context.Context, conn *pgconn.PgConn) error {
	mistake, err := queryValue(ctx, conn, ownSchemaSQL)
	switch {
	case err != nil:
		return fmt.Errorf("find the schema of the queue: %w", err)
	case mistake != "":
		return fmt.Errorf("%s: set search_path in the database URL to the schema of the queue alone, or of a second queue alone", mistake)
	default:
		return nil
	}
}
