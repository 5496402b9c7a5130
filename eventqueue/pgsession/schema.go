package pgsession

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The table of schema versions is not among them: a program that only emits needs no
// privilege to see it. to_regclass follows the search path, as the statements of the
// queue do.
const schemaSQL = `
SELECT coalesce(home.relnamespace::regnamespace::text, ''), coalesce(string_agg(DISTINCT t.name, ', ') FILTER (
        WHERE there.relnamespace IS DISTINCT FROM home.relnamespace), ''), current_setting('search_path')
FROM (SELECT 1) AS one
LEFT JOIN pg_class home ON home.oid = to_regclass('events_v2')
CROSS JOIN unnest(ARRAY['events_v2', 'scheduling_rules', 'event_log']) AS t (name)
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
		return fmt.Errorf("the search path %q finds events_v2 in the schema %s, and not there: %s: set search_path to one schema of a queue",
			path, schema, elsewhere)
	}
	return nil
}
