package migrations

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Querier is a database as Check uses it: a pool, a connection or a
// transaction of pgx.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check is Migrator.Check for the schema public.
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

// TooNewError says that the schema has lost what the binary needs. Check returns it.
type TooNewError struct {
	// Have is the version of the database's schema.
	Have int64

	// Oldest is the oldest version that a binary has to know, and Know the version that this one was built for.
	Oldest, Know int64
}

// Error says what is wrong and what to do.
func (e *TooNewError) Error() string {
	return fmt.Sprintf("the database schema is at version %d, with which only programs built for version %d or later can work, and this binary was built for version %d: "+
		"deploy a later version of it; what it needs is gone from the database, so do not run eventctl migrate down", e.Have, e.Oldest, e.Know)
}

const selectVersion = `
SELECT coalesce(max(version_id), 0)
  FROM ` + versionTable + `
 WHERE is_applied`

// Check returns nil when the schema is at the version of this binary, or at a newer one
// that still has what it needs; a *VersionError when the schema is older or missing, a *TooNewError when
// a newer one says that it is nothing for this binary, and any other error when it could
// not find out. It sends one query, or three if the schema is newer, blocks at most until ctx ends, and is safe
// for concurrent use as far as db is. Inside a transaction a missing schema
// aborts the transaction.
func (m Migrator) Check(ctx context.Context, db Querier) error {
	var have int64
	err := db.QueryRow(ctx, m.Schema.SQL(selectVersion)).Scan(&have)
	if err != nil && !isUndefinedTable(err) {
		return fmt.Errorf("check the schema version in table %s: %w", versionTable, err)
	}
	switch want := Latest(); {
	case have < want:
		return &VersionError{Have: have, Want: want}
	case have > want:
		return m.checkNewer(ctx, db, have, want)
	default:
		return nil
	}
}

// oldestProgram is the function that returns the oldest version of programs that can work with the schema. The
// first migration that needs it makes it; until then, all can. Everybody may call it: migrate roles leaves it alone.
const oldestProgram = "eventsv2_oldest_program"

// checkNewer asks a schema that was migrated by a later version.
func (m Migrator) checkNewer(ctx context.Context, db Querier, have, know int64) error {
	function := m.Schema.Identifier() + "." + oldestProgram + "()"
	var says bool
	if err := db.QueryRow(ctx, `SELECT to_regprocedure($1) IS NOT NULL`, function).Scan(&says); err != nil {
		return fmt.Errorf("look for the function %s: %w", oldestProgram, err)
	}
	if !says {
		return nil
	}
	var oldest int64
	if err := db.QueryRow(ctx, `SELECT `+function).Scan(&oldest); err != nil {
		return fmt.Errorf("ask the function %s: %w", oldestProgram, err)
	}
	if know < oldest {
		return &TooNewError{Have: have, Oldest: oldest, Know: know}
	}
	return nil
}
