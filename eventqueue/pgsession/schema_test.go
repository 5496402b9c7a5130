package pgsession_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// admin is a pool that names schemas itself.
func admin(t *testing.T, url string) (pool *pgxpool.Pool, exec func(sql string)) {
	t.Helper()
	ctx := testenv.Context(t)
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, func(sql string) {
		t.Helper()
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// A table of another application that hides one of the queue's would be written in its place.
func TestATableThatIsHiddenIsNamed(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	pool, exec := admin(t, url)
	exec(`CREATE SCHEMA app`)
	store, err := pgstore.Open(ctx, with(url, "search_path=app,public"), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	check := func() error {
		return pgstore.New(store).Check(ctx, pgstore.Emitting, pgstore.Working, pgstore.Relaying)
	}
	if err := check(); err != nil {
		t.Fatal(err)
	}
	var tables []string
	if err := pool.QueryRow(ctx, `SELECT events_v2_tables()`).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		exec(`CREATE TABLE app.` + table + ` (LIKE public.` + table + `)`)
		if err := check(); err == nil || !strings.Contains(err.Error(), "search_path") || !strings.Contains(err.Error(), table) {
			t.Errorf("the check beside a table app.%s = %v", table, err)
		}
		exec(`DROP TABLE app.` + table)
	}
}

// A path that changes on the database, or the role, leads no part of a program that runs elsewhere.
func TestAPoolStaysOnItsSearchPath(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	_, exec := admin(t, url)
	pool, err := pgstore.Open(ctx, url, "test", 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var before string
	if err := pool.QueryRow(ctx, `SHOW search_path`).Scan(&before); err != nil {
		t.Fatal(err)
	}
	exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = elsewhere', current_database()); END $$`)
	pool.Reset()
	var after string
	if err := pool.QueryRow(ctx, `SHOW search_path`).Scan(&after); err != nil || after != before {
		t.Errorf("the path of a new connection of the pool is %q, was %q; error %v", after, before, err)
	}
	later, err := pgstore.Open(ctx, url, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer later.Close()
	if err := later.QueryRow(ctx, `SHOW search_path`).Scan(&after); err != nil || after != "elsewhere" {
		t.Errorf("the path of a pool that was opened later is %q, want elsewhere; error %v", after, err)
	}
}

// A migration makes a second queue in a schema of its own only where no other is found.
func TestAMigrationStaysInTheSchemaOfTheQueue(t *testing.T) {
	t.Parallel()
	ctx, url := testenv.Context(t), testenv.DatabaseURL(t)
	pool, exec := admin(t, url)
	exec(`CREATE SCHEMA app`)
	made := func() (tables int) {
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM pg_class WHERE relnamespace = 'app'::regnamespace`).Scan(&tables); err != nil {
			t.Fatal(err)
		}
		return tables
	}
	hidden := with(url, "search_path=app,public")
	_, up := migrations.Up(ctx, hidden)
	_, down := migrations.Down(ctx, hidden, 1)
	_, status := migrations.Status(ctx, hidden)
	for what, err := range map[string]error{"up": up, "down": down, "status": status} {
		if err == nil || !strings.Contains(err.Error(), "search_path") || !strings.Contains(err.Error(), "app") {
			t.Errorf("migrate %s = %v", what, err)
		}
	}
	if n := made(); n > 0 {
		t.Errorf("%d tables and indexes were made in the schema app", n)
	}
	if _, err := migrations.Up(ctx, with(url, "search_path=app")); err != nil || made() == 0 {
		t.Errorf("migrate up of a queue of its own = %v", err)
	}
	conn, err := pgx.Connect(ctx, with(url, "search_path=app"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := migrations.Check(ctx, conn); err != nil {
		t.Error(err)
	}
}
