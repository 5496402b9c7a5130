package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"eventsv2/eventqueue/pgsession"
)

const (
	// versionTable records the applied versions.
	versionTable = "eventsv2_schema_version"

	// lockID is the key of the advisory lock that keeps two migrations of one
	// database apart. The number means nothing; it only must not change.
	lockID int64 = 0x65763273636865

	// The lock is tried for every second, 300 times.
	lockPeriodSeconds = 1
	lockAttempts      = 300
)

// Applied is one migration that Up or Down has run.
type Applied struct {
	// Version is the number of the migration.
	Version int64

	// Name is the name of its file.
	Name string

	// Took is how long it ran.
	Took time.Duration
}

// Migrator migrates the queue in one schema of a database, beside whatever else is in it. It is safe
// for concurrent use.
type Migrator struct {
	// Schema is where the queue is. Up makes the schema if it is missing, which needs the right to.
	// Default (""): public.
	Schema pgsession.Schema

	// Access is how the server is reached, where the URL of the database does not say it.
	Access pgsession.Access
}

// In returns the Migrator for a schema; "" is public.
func In(schema pgsession.Schema) Migrator { return Migrator{Schema: schema} }

// Up is Migrator.Up for the schema public.
func Up(ctx context.Context, databaseURL string) ([]Applied, error) {
	return In("").Up(ctx, databaseURL)
}

// Down is Migrator.Down for the schema public.
func Down(ctx context.Context, databaseURL string, steps int) ([]Applied, error) {
	return In("").Down(ctx, databaseURL, steps)
}

// Up applies every migration that the schema has not had yet, in order, and
// returns those that it applied: none when the schema is up to date. It blocks
// while another process migrates the same database, five minutes at most, and
// until ctx ends. A migration waits for two seconds at most for a lock that another transaction holds,
// and is tried again for five minutes, so that no other statement waits behind it for long (the database URL may have
// another lock_timeout). On an error the migrations before the failed one stay applied
// and are returned with it. If the schema has objects of another application with the names
// of what would be created, Up returns a *ForeignError and has written nothing.
func (m Migrator) Up(ctx context.Context, databaseURL string) ([]Applied, error) {
	t, err := m.target(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	return t.up(ctx)
}

// UpPool is Up for the database of a pool. It opens connections of its own, as the pool does.
func (m Migrator) UpPool(ctx context.Context, pool *pgxpool.Pool) ([]Applied, error) {
	t, err := m.targetOf(pool.Config())
	if err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	return t.up(ctx)
}

// Down takes back the given number of migrations, the newest first, and returns
// those that it took back; they are fewer when no more are applied. It deletes
// the data that the dropped tables hold. Steps below 1 are refused with an
// error. It blocks as Up does. The schema itself stays.
func (m Migrator) Down(ctx context.Context, databaseURL string, steps int) ([]Applied, error) {
	if steps <= 0 {
		return nil, fmt.Errorf("migrate down: steps is %d: give how many migrations to take back, at least 1", steps)
	}
	t, err := m.target(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migrate down: %w", err)
	}
	provider, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("migrate down: %w", err)
	}
	var results []*goose.MigrationResult
	for range steps {
		var result *goose.MigrationResult
		if err = patiently(ctx, func() (err error) { result, err = provider.Down(ctx); return err }); err != nil {
			break
		}
		results = append(results, result)
	}
	if errors.Is(err, goose.ErrNoNextVersion) {
		err = nil
	}
	if errors.Is(err, goose.ErrVersionNotFound) {
		err = fmt.Errorf("a later version has migrated this schema, and only that knows the way back: use its eventctl (eventctl migrate status shows the versions): %w", err)
	}
	return applied(results), finish("migrate down", provider, err)
}

func closeDB(db *sql.DB) error {
	if err := db.Close(); err != nil {
		return fmt.Errorf("close the database connection: %w", err)
	}
	return nil
}

// finish closes the provider's connections and names the operation in its error.
func finish(operation string, provider *goose.Provider, err error) error {
	if closeErr := provider.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close the database connection: %w", closeErr))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

func applied(results []*goose.MigrationResult) []Applied {
	list := make([]Applied, 0, len(results))
	for _, r := range results {
		list = append(list, Applied{Version: r.Source.Version, Name: r.Source.Path, Took: r.Duration})
	}
	return list
}
