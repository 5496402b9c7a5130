package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"eventsv2/eventqueue/pgsession"
)

// target is a schema of a database, and how to connect to it.
type target struct {
	schema   pgsession.Schema
	config   *pgx.ConnConfig
	before   func(ctx context.Context, config *pgx.ConnConfig) error // of a pool; nil: nothing
	settings pgsession.Settings
}

// target reads a database URL, or keyword string.
func (m Migrator) target(databaseURL string) (*target, error) {
	if databaseURL == "" {
		return nil, errors.New("the database URL is empty: set DATABASE_URL to postgres://user:password@host:5432/database")
	}
	config, err := pgsession.ParseURL(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if err := m.Access.Apply(config); err != nil {
		return nil, err
	}
	return m.targetOf(config)
}

// targetOf is target for the configuration of a pool, which it may change. What a migration
// creates is in the first schema of the search path, and the version table keeps times without a zone.
func (m Migrator) targetOf(config *pgxpool.Config) (*target, error) {
	if err := m.Schema.Validate(); err != nil {
		return nil, err
	}
	settings, err := pgsession.TakeSettings(&config.ConnConfig.Config, pgsession.Settings{"lock_timeout": lockWait}, pgsession.Settings{"timezone": "UTC", "search_path": m.Schema.Identifier()})
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	return &target{schema: m.Schema, config: config.ConnConfig, before: config.BeforeConnect, settings: settings}, nil
}

// prepare has to be called on each new connection; it refuses a pooler that would lose the lock.
func (t *target) prepare(ctx context.Context, conn *pgx.Conn) error {
	if err := pgsession.CheckPooling(ctx, conn.PgConn(), &t.config.Config); err != nil {
		return err
	}
	return pgsession.Prepare(ctx, conn.PgConn(), t.settings)
}

// connect returns a connection, which the caller closes.
func (t *target) connect(ctx context.Context) (*pgx.Conn, error) {
	config := t.config.Copy()
	if t.before != nil {
		if err := t.before(ctx, config); err != nil {
			return nil, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// open makes the migration library's view of the schema. Nothing is connected before the first use.
func (t *target) open() (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(lockID), lock.WithLockTimeout(lockPeriodSeconds, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("prepare the advisory lock: %w", err)
	}
	options := []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(t.prepare)}
	if t.before != nil {
		options = append(options, stdlib.OptionBeforeConnect(t.before))
	}
	db := stdlib.OpenDB(*t.config, options...)
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

// up applies what is missing.
func (t *target) up(ctx context.Context) ([]Applied, error) {
	if err := t.makeRoom(ctx); err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	provider, err := t.open()
	if err != nil {
		return nil, fmt.Errorf("migrate up: %w", err)
	}
	var all []*goose.MigrationResult
	err = patiently(ctx, func() error {
		results, err := provider.Up(ctx)
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			results = partial.Applied
		}
		all = append(all, results...)
		return err
	})
	return applied(all), finish("migrate up", provider, err)
}

// makeRoom refuses a schema with objects of another application, and makes one that is missing.
func (t *target) makeRoom(ctx context.Context) (err error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	// In one snapshot: another process may migrate meanwhile.
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		_, err := missing(ctx, tx, t.schema)
		return err
	})
	if err != nil {
		return err
	}
	return makeSchema(ctx, conn, t.schema)
}

const hasVersionsSQL = `
SELECT EXISTS (SELECT FROM pg_class WHERE relname = $2 AND relnamespace = to_regnamespace(quote_ident($1)))`

// missing returns the migrations that the schema has not had, unless something of another application is
// in their way.
func missing(ctx context.Context, tx pgx.Tx, schema pgsession.Schema) ([]source, error) {
	var made bool
	if err := tx.QueryRow(ctx, hasVersionsSQL, schema.Name(), versionTable).Scan(&made); err != nil {
		return nil, fmt.Errorf("look for the table %s: %w", versionTable, err)
	}
	have := map[int64]time.Time{}
	if made {
		var err error
		if have, err = appliedVersions(ctx, tx, schema); err != nil {
			return nil, fmt.Errorf("read table %s: %w", versionTable, err)
		}
	}
	var list []source
	for _, s := range embedded() {
		if _, done := have[s.version]; !done {
			list = append(list, s)
		}
	}
	switch {
	case len(list) == 0:
		return nil, nil
	case !made:
		return list, refuseForeign(ctx, tx, schema, 0)
	case list[0].version == 1:
		if err := refuseTruncated(ctx, tx, schema); err != nil {
			return nil, err
		}
	}
	return list, refuseForeign(ctx, tx, schema, list[0].version)
}

// executor is a connection or a transaction.
type executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// makeSchema makes a schema that does not exist. Another process may make it at the same time.
func makeSchema(ctx context.Context, db executor, schema pgsession.Schema) error {
	var exists bool
	if err := db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, schema.Name()).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := db.Exec(ctx, "CREATE SCHEMA "+schema.Identifier())
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && (refused.Code == "42P06" || refused.Code == "23505"):
		return nil // it is there now
	case err != nil:
		return fmt.Errorf("make the schema %s: %w", schema.Name(), err)
	default:
		return nil
	}
}
