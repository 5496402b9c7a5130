package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// UpTx applies every migration that the schema has not had yet, in a transaction of the caller's, and returns
// their number: they are committed with it, or not at all. It waits for other migrations of the
// database, and they for the end of the transaction; so do the tables' users, so keep it short. Locks
// are waited for as long as the transaction's lock_timeout says.
// After an error the transaction can only be rolled back. Errors are as for Up.
func (m Migrator) UpTx(ctx context.Context, tx pgx.Tx) (applied int, err error) {
	if err := m.Schema.Validate(); err != nil {
		return 0, fmt.Errorf("migrate up: %w", err)
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockID); err != nil {
		return 0, fmt.Errorf("migrate up: wait for other migrations: %w", err)
	}
	list, err := missing(ctx, tx, m.Schema)
	if err != nil {
		return 0, fmt.Errorf("migrate up: %w", err)
	}
	if len(list) == 0 {
		return 0, nil
	}
	if err := makeSchema(ctx, tx, m.Schema); err != nil {
		return 0, fmt.Errorf("migrate up: %w", err)
	}
	var path string
	if err := tx.QueryRow(ctx, `SHOW search_path`).Scan(&path); err != nil {
		return 0, fmt.Errorf("migrate up: %w", err)
	}
	if _, err := tx.Conn().PgConn().Exec(ctx, m.steps(list)).ReadAll(); err != nil {
		return 0, fmt.Errorf("migrate up: %w", err)
	}
	// What follows in the transaction is the caller's.
	if _, err := tx.Exec(ctx, `SELECT set_config('search_path', $1, true)`, path); err != nil {
		return 0, fmt.Errorf("migrate up: set the search path back: %w", err)
	}
	return len(list), nil
}
