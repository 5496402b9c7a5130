package pgnotify

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// table is where notifications wait.
const table = "events_v2_notifications"

// Locking rows needs UPDATE, though nobody changes one.
const checkSQL = `
SELECT quote_ident(current_user), coalesce(string_agg(privilege, ', ' ORDER BY nr), '')
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) WITH ORDINALITY AS needed (privilege, nr)
WHERE NOT has_table_privilege('` + table + `', privilege)`

// Check reports whether the table is there and may be used: a worker that may
// read it but not delete from it would fail at each pull. It costs one statement,
// and blocks at most until ctx ends, or for ten seconds when ctx has no deadline.
func (n *Notifier) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var role, missing string
	err := n.pool.QueryRow(ctx, checkSQL, pgx.QueryExecModeSimpleProtocol).Scan(&role, &missing)
	if err != nil {
		return fmt.Errorf("check the notifications in Postgres: %w", err)
	}
	if missing != "" {
		return fmt.Errorf("the role %s lacks %s on the table %s, where notifications wait: GRANT %s ON %s TO %s",
			role, missing, table, missing, table, role)
	}
	return nil
}

// waitingTimeout bounds the look of Waiting: a table that nobody empties may be
// large, and all that hangs on the answer is a warning.
const waitingTimeout = 2 * time.Second

const waitingSQL = `SELECT EXISTS (SELECT FROM ` + table + `)`

// Waiting tells whether notifications wait in the table, for a program that has
// another doorbell and would never see them. It costs one statement, and blocks
// for two seconds at most.
func Waiting(ctx context.Context, pool *pgxpool.Pool) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, waitingTimeout)
	defer cancel()
	var waiting bool
	if err := pool.QueryRow(ctx, waitingSQL, pgx.QueryExecModeSimpleProtocol).Scan(&waiting); err != nil {
		return false, fmt.Errorf("look whether notifications wait in Postgres: %w", err)
	}
	return waiting, nil
}
