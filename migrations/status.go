package migrations

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue/pgsession"
)

// undefinedTable is the SQLSTATE of a statement that names a missing table.
const undefinedTable = "42P01"

// State says of one migration whether the database has had it.
type State struct {
	// Version is the number of the migration.
	Version int64

	// Name is the name of its file, or empty for one that the database has had
	// and this binary does not know, because the binary is older.
	Name string

	// Applied reports whether it was applied to the database.
	Applied bool

	// AppliedAt is when, by the database's clock; the zero time when it has not.
	AppliedAt time.Time
}

const selectVersions = `
SELECT version_id, tstamp
  FROM ` + versionTable + `
 WHERE is_applied AND version_id > 0
 ORDER BY version_id`

// Status is Migrator.Status for the schema public.
func Status(ctx context.Context, databaseURL string) ([]State, error) {
	return In("").Status(ctx, databaseURL)
}

// Status returns the state of every migration that this binary or the database
// knows, in the order of their versions. It only reads: a database without a
// version table stays without one and has had none. It takes no lock, and blocks
// at most until ctx ends.
func (m Migrator) Status(ctx context.Context, databaseURL string) (states []State, err error) {
	t, err := m.target(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	conn, err := t.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()

	have, err := appliedVersions(ctx, conn, m.Schema)
	if err != nil {
		return nil, fmt.Errorf("migration status: read table %s: %w", versionTable, err)
	}
	for _, s := range embedded() {
		at, done := have[s.version]
		states = append(states, State{Version: s.version, Name: s.name, Applied: done, AppliedAt: at})
		delete(have, s.version)
	}
	return append(states, unknown(have)...), nil
}

func appliedVersions(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, schema pgsession.Schema) (map[int64]time.Time, error) {
	have := make(map[int64]time.Time)
	rows, err := db.Query(ctx, schema.SQL(selectVersions))
	if err == nil {
		var version int64
		var at time.Time
		_, err = pgx.ForEachRow(rows, []any{&version, &at}, func() error {
			have[version] = at
			return nil
		})
	}
	if isUndefinedTable(err) {
		return have, nil
	}
	return have, err
}

// unknown lists the versions that only the database knows.
func unknown(have map[int64]time.Time) []State {
	var states []State
	for _, version := range slices.Sorted(maps.Keys(have)) {
		states = append(states, State{Version: version, Applied: true, AppliedAt: have[version]})
	}
	return states
}

func isUndefinedTable(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == undefinedTable
}
