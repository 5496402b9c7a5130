package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/services"
)

// DatabaseURL returns the URL of a fresh database with the schema in it, for the
// calling test alone. It is dropped when the test and its subtests have ended,
// whoever is still connected. It fails the test when no Postgres can be had,
// blocks until the database is there, and is safe for concurrent use.
func DatabaseURL(t testing.TB) string {
	t.Helper()
	p := requirePostgres(t)
	return p.database(t, p.template)
}

// DatabaseURLIn is DatabaseURL with a second queue, in a schema of that name.
func DatabaseURLIn(t testing.TB, schema string) string {
	t.Helper()
	p := requirePostgres(t)
	template, err := p.templateIn(schema)
	if err != nil {
		t.Fatalf("this test needs a database with a queue in the schema %s: %v", schema, err)
	}
	return p.database(t, template)
}

// EmptyDatabaseURL is DatabaseURL without the schema.
func EmptyDatabaseURL(t testing.TB) string {
	t.Helper()
	return requirePostgres(t).database(t, emptyTemplate)
}

// Pool returns a pool on a fresh database as DatabaseURL makes it. It is closed
// when the test ends, so everything acquired from it must be released by then.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), DatabaseURL(t))
	if err != nil {
		t.Fatalf("open a pool on the test's database: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func requirePostgres(t testing.TB) *postgres {
	t.Helper()
	p, err := process.postgres.get()
	if err != nil {
		t.Fatalf("this test needs Postgres: %v", err)
	}
	return p
}

// database makes a database for the test and has it dropped at its end.
func (p *postgres) database(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("eventsv2_test_%d_%s", os.Getpid(), strings.ToLower(rand.Text()[:12]))
	databaseURL, err := services.WithDatabase(p.service.URL, name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), adminLimit)
	defer cancel()
	if err := createDatabase(ctx, p.admin, name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), adminLimit)
		defer cancel()
		if err := dropDatabase(ctx, p.admin, name); err != nil {
			t.Error(err)
		}
	})
	return databaseURL
}

// executor is a pool or a connection.
type executor interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// fileCopy has Postgres copy the files of a template. Since version 15 it would write
// them to the write-ahead log instead, which takes twice as long for a small database and
// leaves out the file from which the first connection knows the catalog. Before, there
// was no other way and no name for it.
const fileCopy = 15_00_00

func createDatabase(ctx context.Context, db executor, name, template string) error {
	var version int
	if err := db.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return fmt.Errorf("ask for the version of Postgres: %w", err)
	}
	strategy := ""
	if version >= fileCopy {
		strategy = " STRATEGY FILE_COPY"
	}
	if _, err := db.Exec(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template)+strategy); err != nil {
		return fmt.Errorf("create database %s from %s: %w", name, template, err)
	}
	return nil
}

// dropDatabase drops a database, with its connections, if it exists.
func dropDatabase(ctx context.Context, db executor, name string) error {
	if _, err := db.Exec(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
