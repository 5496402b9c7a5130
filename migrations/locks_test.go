package migrations_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// queueAt makes a queue of a version.
func queueAt(t *testing.T, version int64) (databaseURL string) {
	t.Helper()
	databaseURL = testenv.EmptyDatabaseURL(t)
	script, err := migrations.In("").SQL(1, version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, databaseURL).PgConn().Exec(testenv.Context(t), script).ReadAll(); err != nil {
		t.Fatal(err)
	}
	return databaseURL
}

// TestMigrationBlocksNoOtherTransaction: while a transaction has used a table for long, a migration that
// changes that table holds up others for two seconds at most, and goes on when the transaction has ended.
func TestMigrationBlocksNoOtherTransaction(t *testing.T) {
	t.Parallel()
	const before = 1 // the next one changes scheduling_rules, which claims read
	databaseURL := queueAt(t, before)
	ctx := testenv.Context(t)
	long, err := connect(t, databaseURL).Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const claims = `SELECT count(*) FROM scheduling_rules`
	if _, err := long.Exec(ctx, claims); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { _, err := migrations.Up(ctx, databaseURL); over <- err }()
	other := connect(t, databaseURL)
	testenv.Eventually(t, "the migration waits for its lock", func() bool {
		var waits bool
		err := other.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'scheduling_rules'::regclass)`).Scan(&waits)
		return err == nil && waits
	})
	soon, cancel := context.WithTimeout(ctx, 20*time.Second) // ten times what is promised
	defer cancel()
	if _, err := other.Exec(soon, claims); err != nil {
		t.Fatalf("others wait behind the migration: %v", err)
	}
	select {
	case err := <-over:
		t.Fatalf("the migration ended while a transaction held its table: %v", err)
	default:
	}
	if err := long.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Errorf("the migration did not go on: %v", err)
	}
	states(t, databaseURL, migrations.Latest())
}

// The tables that the queue fills, and those of them that a migration reads or writes as a whole while others wait. Each of
// the latter is in docs/upgrading.md.
var (
	largeTables = []string{"events_v2", "event_log", "event_attempts", "event_minutes", "event_hours", "events_v2_notifications", "event_groups", "unique_keys", "unique_expiries"}
	slow        = map[int64][]string{5: {"events_v2"}, 12: {"event_log"}, 21: {"events_v2"}}
)

const rowsSQL = `
INSERT INTO events_v2 (canvas_id, module, name, modifier, value)
SELECT gen_random_uuid(), 'M', 'n', '_', '1' FROM generate_series(1, 100);
INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
SELECT n, gen_random_uuid(), 'M', 'n', '_', '1', 'COMPLETED', 0, 1, now() FROM generate_series(1, 100) AS n;
INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
SELECT n, 1, gen_random_uuid(), now(), '1 s', 'e' FROM generate_series(1, 100) AS n;
INSERT INTO event_minutes (minute, canvas_id, module, name) SELECT now(), gen_random_uuid(), 'M', 'n' FROM generate_series(1, 100) AS n;
INSERT INTO event_hours (hour, canvas_id, module, name, emitted, completed, failed, retried, waits, runs)
SELECT now(), gen_random_uuid(), 'M', 'n', 0, 0, 0, 0, '{}', '{}' FROM generate_series(1, 100) AS n;
INSERT INTO event_groups (event_id, stage, canvas_id, group_key) SELECT n, 1, gen_random_uuid(), 'k' FROM generate_series(1, 100) AS n;
INSERT INTO unique_keys (canvas_id, key, event_id) SELECT gen_random_uuid(), 'k', n FROM generate_series(1, 100) AS n;
INSERT INTO unique_expiries (event_id, unique_seconds, expires_at) SELECT n, 60, now() FROM generate_series(1, 100) AS n;
INSERT INTO events_v2_notifications (event_id, canvas_id) SELECT n, gen_random_uuid() FROM generate_series(1, 100) AS n`

// workSQL is the work of the open transaction on existing tables, with the strongest lock on each.
const workSQL = `
SELECT c.relname::text, coalesce(locks.mode, ''), pg_stat_get_xact_tuples_returned(c.oid) + pg_stat_get_xact_tuples_inserted(c.oid) + pg_stat_get_xact_tuples_updated(c.oid),
    c.relfilenode <> b.relfilenode
FROM before b JOIN pg_class c USING (oid) CROSS JOIN LATERAL (
    SELECT min(CASE l.mode WHEN 'AccessExclusiveLock' THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE' END) AS mode FROM pg_locks l
    WHERE l.pid = pg_backend_pid() AND l.relation = c.oid AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
) AS locks ORDER BY 1`

// TestMigrationsTakeTheirDocumentedLocks: each migration after the first names in its head each table that others
// have to wait for, and none reads or writes the rows of a table that may be large, but for those that
// the page about upgrading warns of.
func TestMigrationsTakeTheirDocumentedLocks(t *testing.T) {
	t.Parallel()
	databaseURL := queueAt(t, 1)
	ctx, conn := testenv.Context(t), connect(t, databaseURL)
	run := func(sql string) {
		t.Helper()
		if _, err := conn.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	run(rowsSQL)
	for version := int64(2); version <= migrations.Latest(); version++ {
		run(`SELECT pg_stat_force_next_flush()`) // what has been counted so far
		run(`DROP TABLE IF EXISTS before; CREATE TEMPORARY TABLE before AS SELECT oid, relfilenode FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`)
		script, err := migrations.In("").SQL(version, version)
		if err != nil {
			t.Fatal(err)
		}
		run(strings.TrimSuffix(strings.TrimSpace(script), "COMMIT;"))
		name, says := headOf(t, version)
		rows, err := conn.Query(ctx, workSQL)
		if err != nil {
			t.Fatal(err)
		}
		var table, mode string
		var touched int64
		var rewritten bool
		if _, err := pgx.ForEachRow(rows, []any{&table, &mode, &touched, &rewritten}, func() error {
			if mode != "" && (!strings.Contains(says, table) || !strings.Contains(says, mode)) {
				t.Errorf("%s locks %s, %s: its head says %q", name, table, mode, says)
			}
			reads := mode != "" && touched >= 100 || rewritten
			if warned := slices.Contains(slow[version], table); slices.Contains(largeTables, table) && reads != warned {
				t.Errorf("%s has others wait while it reads or writes %d rows of %s (or all: %v): %v is what docs/upgrading.md warns of", name, touched, table, rewritten, slow[version])
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		run("COMMIT")
	}
}

// headOf returns the name of a migration, and what its head says of locks.
func headOf(t *testing.T, version int64) (name, locks string) {
	t.Helper()
	list, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".sql") })
	name = list[version-1].Name()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "-- +goose Up")
	_, locks, found := strings.Cut(head, "-- Locks: ")
	if !found {
		t.Errorf("%s does not say what it locks", name)
	}
	return name, locks
}
