package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

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

// Up applies every migration that the database has not had yet, in order, and
// returns those that it applied: none when the schema is up to date. It blocks
// while another process migrates the same database, five minutes at most, and
// until ctx ends. On an error the migrations before the failed one stay applied
// and are returned with it.
func Up(ctx context.Context, databaseURL string) ([]Applied, error) {
	provider, err := open(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	results, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		results = partial.Applied
	}
	return applied(results), finish("migrate up", provider, err)
}

// Down takes back the given number of migrations, the newest first, and returns
// those that it took back; they are fewer when no more are applied. It deletes
// the data that the dropped tables hold. Steps below 1 are refused with an
// error. It blocks as Up does.
func Down(ctx context.Context, databaseURL string, steps int) ([]Applied, error) {
	if steps <= 0 {
		return nil, fmt.Errorf("migrate down: steps is %d: give how many migrations to take back, at least 1", steps)
	}
	provider, err := open(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migrate down: %w", err)
	}
	var results []*goose.MigrationResult
	for range steps {
		var result *goose.MigrationResult
		if result, err = provider.Down(ctx); err != nil {
			break
		}
		results = append(results, result)
	}
	if errors.Is(err, goose.ErrNoNextVersion) {
		err = nil
	}
	return applied(results), finish("migrate down", provider, err)
}

// open makes the migration library's view of the database. Nothing is connected
// before the first use.
func open(databaseURL string) (*goose.Provider, error) {
	config, prepare, err := parse(databaseURL)
	if err != nil {
		return nil, err
	}
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(lockID), lock.WithLockTimeout(lockPeriodSeconds, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("prepare the advisory lock: %w", err)
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(prepare))
	provider, err := goose.NewProvider(goose.DialectPostgres, db, fsys,
		goose.WithTableName(versionTable),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
		goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read the embedded migrations: %w", err), closeDB(db))
	}
	return provider, nil
}

// parse reads a database URL (or keyword string) for a connection whose session
// runs in UTC, because the version table keeps times without a zone. prepare has to
// be called on each new connection; it refuses a pooler that would lose the lock, and a search
// path on which a migration would make a second queue beside the one that is found.
func parse(databaseURL string) (config *pgx.ConnConfig, prepare func(ctx context.Context, conn *pgx.Conn) error, err error) {
	if databaseURL == "" {
		return nil, nil, errors.New("the database URL is empty: set DATABASE_URL to postgres://user:password@host:5432/database")
	}
	parsed, err := pgsession.ParseURL(databaseURL)
	if err != nil {
		return nil, nil, fmt.Errorf("read the database URL: %w", err)
	}
	config = parsed.ConnConfig
	settings, err := pgsession.TakeSettings(&config.Config, nil, pgsession.Settings{"timezone": "UTC"})
	if err != nil {
		return nil, nil, fmt.Errorf("read the database URL: %w", err)
	}
	return config, func(ctx context.Context, conn *pgx.Conn) error {
		if err := pgsession.CheckPooling(ctx, conn.PgConn(), &config.Config); err != nil {
			return err
		}
		if err := pgsession.Prepare(ctx, conn.PgConn(), settings); err != nil {
			return err
		}
		return pgsession.CheckOwnSchema(ctx, conn.PgConn())
	}, nil
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
