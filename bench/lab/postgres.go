// Package lab is the environment of the benchmark: a Postgres with the settings of the
// comparison, databases in it, and the instruments. These count the statements and the
// written bytes of the server, and measure how busy the rest of the machine was.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
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

// Lab is a running Postgres. Its methods are safe for concurrent use, but for Close.
type Lab struct {
	postgres *services.Service

	mu       sync.Mutex
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
	err = l.ask(ctx, "SHOW server_version", nil, &version)
	return version, err
}

// EmulatorHost is the host:port of the official Pub/Sub emulator, which is started
// when it is asked for the first time.
func (l *Lab) EmulatorHost(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
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
	l.mu.Lock()
	l.made++
	name := fmt.Sprintf("bench_%d", l.made)
	_, err = l.admin.Exec(ctx, "CREATE DATABASE "+name)
	l.mu.Unlock()
	if err != nil {
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
	l.mu.Lock()
	defer l.mu.Unlock()
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
	l.mu.Lock()
	defer l.mu.Unlock()
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

// Until waits until a condition holds in a database, which it asks every few milliseconds.
func Until(ctx context.Context, databaseURL, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	for holds := false; err == nil && !holds; {
		if err = conn.QueryRow(ctx, sql, args...).Scan(&holds); err == nil && !holds {
			select {
			case <-time.After(askEvery):
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// askEvery is the interval of Until.
const askEvery = 20 * time.Millisecond

// Snapshot holds a snapshot of a database open until it is released: nothing that is deleted meanwhile can be vacuumed.
func Snapshot(ctx context.Context, databaseURL string) (release func() error, err error) {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM pg_class LIMIT 1"); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return func() error { return conn.Close(context.WithoutCancel(ctx)) }, nil
}

// ask reads one row of the server.
func (l *Lab) ask(ctx context.Context, sql string, args []any, into ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admin.QueryRow(ctx, sql, args...).Scan(into...)
}

// WAL returns how many bytes of write-ahead log were written.
func (l *Lab) WAL(ctx context.Context) (bytes int64, err error) {
	err = l.ask(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint", nil, &bytes)
	return bytes, err
}

// Statements returns how many statements a database has run.
func (l *Lab) Statements(ctx context.Context, databaseURL string) (int64, error) {
	return l.sum(ctx, databaseURL, "calls", "")
}

// StatementsOf is Statements for those of a role.
func (l *Lab) StatementsOf(ctx context.Context, databaseURL, role string) (int64, error) {
	return l.sum(ctx, databaseURL, "calls", role)
}

// Blocks returns how many blocks the statements of a database have read.
func (l *Lab) Blocks(ctx context.Context, databaseURL string) (int64, error) {
	return l.sum(ctx, databaseURL, "shared_blks_hit + shared_blks_read", "")
}

// sum adds up what a database has done by its statements, or those of a role.
func (l *Lab) sum(ctx context.Context, databaseURL, of, role string) (n int64, err error) {
	name, err := nameOf(databaseURL)
	if err != nil {
		return 0, err
	}
	err = l.ask(ctx, `
SELECT coalesce(sum(`+of+`), 0)::bigint
FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON r.oid = s.userid
WHERE d.datname = $1 AND $2::text IN ('', r.rolname::text)`, []any{name, role}, &n)
	return n, err
}
