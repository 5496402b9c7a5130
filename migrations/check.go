package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is what Check needs of a database: a pool, a connection or a
// transaction of pgx.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check is that of a Migrator for the schema public.
func Check(ctx context.Context, db Querier) error { return In("").Check(ctx, db) }

// VersionError says that the schema is older than the binary needs. Check
// returns it.
type VersionError struct {
	// Have is the version of the database's schema, 0 when there is none.
	Have int64

	// Want is the version that the binary was built for.
	Want int64
}

// Error says what is wrong and what to do.
func (e *VersionError) Error() string {
	if e.Have == 0 {
		return fmt.Sprintf("the database has no schema of the event queue, and this binary needs version %d: run: eventctl migrate up", e.Want)
	}
	return fmt.Sprintf("the database schema is at version %d and this binary needs version %d: run: eventctl migrate up", e.Have, e.Want)
}

const selectVersion = `
SELECT coalesce(max(version_id), 0)
  FROM ` + versionTable + `
 WHERE is_applied`

// Check returns nil when the schema is at the version of this binary or newer,
// a *VersionError when it is older or missing, and any other error when it could
// not find out. It sends one query, blocks at most until ctx ends, and is safe
// for concurrent use as far as db is. Inside a transaction a missing schema
// aborts the transaction.
func (m Migrator) Check(ctx context.Context, db Querier) error {
	var have int64
	err := db.QueryRow(ctx, m.Schema.SQL(selectVersion)).Scan(&have)
	if err != nil && !isUndefinedTable(err) {
		return fmt.Errorf("check the schema version in table %s: %w", versionTable, err)
	}
	if want := Latest(); have < want {
		return &VersionError{Have: have, Want: want}
	}
	return nil
}
