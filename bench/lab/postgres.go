// Package lab is the environment of the benchmark: a Postgres with the settings of the
// comparison, databases in it, and the instruments. These count the statements and the
// written bytes of the server, and measure how busy the rest of the machine was.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/bench/contest"
	"eventsv2/test/services"
)

// Settings are the settings of the server that differ from Postgres' defaults.
var Settings = [][2]string{
	{"fsync", "on"},
	{"synchronous_commit", "on"},
	{"full_page_writes", "on"},
	{"shared_buffers", "1GB"},
	{"max_wal_size", "8GB"},
	{"checkpoint_timeout", "30min"},
}

// Lab is a running Postgres. It is not safe for concurrent use.
type Lab struct {
	postgres *services.Service
	emulator *services.Service // nil before it is needed
	admin    *pgx.Conn
	made     int
}

// Open starts a Postgres of the benchmark's own.
func Open(ctx context.Context) (*Lab, error) {
	options := []services.Option{services.Private(), services.Durable()}
	for _, s := range Settings {
		options = append(options, services.Setting(s[0], s[1]))
	}
	postgres, err := services.Postgres(ctx, options...)
	if err != nil {
		return nil, err
	}
	l := &Lab{postgres: postgres}
	if l.admin, err = pgx.Connect(ctx, postgres.URL); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the benchmark's Postgres: %w", err), l.Close(ctx))
	}
	if _, err := l.admin.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return nil, errors.Join(fmt.Errorf("count statements: %w; install Postgres' contrib modules", err), l.Close(ctx))
	}
	return l, nil
}

// stopLimit bounds the clean-up.
const stopLimit = time.Minute

// Close stops the servers.
func (l *Lab) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	var errs []error
	if l.admin != nil {
		errs = append(errs, l.admin.Close(ctx))
	}
	if l.emulator != nil {
		errs = append(errs, l.emulator.Stop(ctx))
	}
	return errors.Join(append(errs, l.postgres.Stop(ctx))...)
}

// Version is that of the server.
func (l *Lab) Version(ctx context.Context) (version string, err error) {
	err = l.admin.QueryRow(ctx, "SHOW server_version").Scan(&version)
	return version, err
}

// EmulatorHost is the host:port of the official Pub/Sub emulator, which is started
// when it is asked for the first time.
func (l *Lab) EmulatorHost(ctx context.Context) (string, error) {
	if l.emulator == nil {
		emulator, err := services.Emulator(ctx, services.Private())
		if err != nil {
			return "", err
		}
		l.emulator = emulator
	}
	return l.emulator.URL, nil
}

// Database makes an empty database and prepares it.
func (l *Lab) Database(ctx context.Context, prepare func(ctx context.Context, databaseURL string) error) (databaseURL string, err error) {
	l.made++
	name := fmt.Sprintf("bench_%d", l.made)
	if _, err := l.admin.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return "", fmt.Errorf("make a database: %w", err)
	}
	at, err := url.Parse(l.postgres.URL)
	if err != nil {
		return "", fmt.Errorf("the server's URL: %w", err)
	}
	at.Path = "/" + name
	return at.String(), prepare(ctx, at.String())
}

// Drop drops a database that Database made.
func (l *Lab) Drop(ctx context.Context, databaseURL string) error {
	name, err := nameOf(databaseURL)
	if err != nil {
		return err
	}
	_, err = l.admin.Exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
	return err
}

func nameOf(databaseURL string) (string, error) {
	at, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("a database's URL: %w", err)
	}
	return at.Path[1:], nil
}

// Pool makes the pool of a side.
func Pool(ctx context.Context, databaseURL string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = contest.Connections
	return pgxpool.NewWithConfig(ctx, config)
}

// Prepare makes the server do now what it would otherwise do during a run: write its dirty
// pages, and vacuum and analyze the tables of a database. So both sides begin a run alike.
func (l *Lab) Prepare(ctx context.Context, databaseURL string) error {
	if err := Exec(ctx, databaseURL, "VACUUM ANALYZE"); err != nil {
		return err
	}
	_, err := l.admin.Exec(ctx, "CHECKPOINT")
	return err
}

// Exec runs one statement in a database.
func Exec(ctx context.Context, databaseURL, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	_, err = conn.Exec(ctx, sql, args...)
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// WAL returns how many bytes of write-ahead log were written.
func (l *Lab) WAL(ctx context.Context) (bytes int64, err error) {
	err = l.admin.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint").Scan(&bytes)
	return bytes, err
}

// Statements returns how many statements a database has run.
func (l *Lab) Statements(ctx context.Context, databaseURL string) (n int64, err error) {
	name, err := nameOf(databaseURL)
	if err != nil {
		return 0, err
	}
	err = l.admin.QueryRow(ctx, `
SELECT coalesce(sum(s.calls), 0)::bigint
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
WHERE d.datname = $1`, name).Scan(&n)
	return n, err
}
