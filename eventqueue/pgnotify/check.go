package pgnotify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgsession"
)

// table holds the notifications.
const table = "events_v2_notifications"

// Locking rows needs UPDATE, though rows are never updated.
const checkSQL = `
SELECT quote_ident(current_user), coalesce(string_agg(privilege, ', ' ORDER BY nr), '')
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS needed (privilege, nr)
WHERE NOT has_table_privilege('` + table + `', privilege)`

// checkPublishSQL is checkSQL for a program that only publishes.
const checkPublishSQL = `
SELECT quote_ident(current_user), CASE WHEN bool_and(has_column_privilege('` + table + `', name, 'INSERT')) THEN ''
    ELSE 'INSERT (event_id, canvas_id, traceparent)' END
FROM unnest(ARRAY['event_id', 'canvas_id', 'traceparent']) AS needed (name)`

// Check returns an error if the table is missing or a privilege on it is: a worker
// that may read it but not delete from it would fail at each pull. With
// Config.PublishOnly it asks for the right to insert alone. It costs one
// statement, and blocks at most until ctx ends, or for ten seconds when ctx has no
// deadline.
func (n *Notifier) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var role, missing string
	sql := checkSQL
	if n.config.PublishOnly {
		sql = checkPublishSQL
	}
	err := n.db.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol).Scan(&role, &missing)
	if err != nil {
		return fmt.Errorf("check the notifications in Postgres: %w", err)
	}
	if missing != "" {
		return fmt.Errorf("the role %s lacks %s on the table %s, where notifications wait: GRANT %s ON %s TO %s",
			role, missing, table, missing, table, role)
	}
	return nil
}

// waitingTimeout bounds the statement of Waiting: a table that no process empties may
// be large, and its answer only decides about a warning.
const waitingTimeout = 2 * time.Second

const waitingSQL = `SELECT EXISTS (SELECT FROM ` + table + `)`

// Waiting reports whether the table has notifications, for a program that uses
// another notifier and would never see them. It costs one statement, and blocks
// for at most two seconds.
func Waiting(ctx context.Context, pool *pgxpool.Pool, schema pgsession.Schema) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, waitingTimeout)
	defer cancel()
	var waiting bool
	if err := schema.On(pool).QueryRow(ctx, waitingSQL, pgx.QueryExecModeSimpleProtocol).Scan(&waiting); err != nil {
		return false, fmt.Errorf("check whether notifications wait in Postgres: %w", err)
	}
	return waiting, nil
}
