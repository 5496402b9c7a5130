package model_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"pgregory.net/rapid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/testenv"
)

// database is a Postgres whose clock the test sets.
type database struct {
	ctx   context.Context
	pool  *pgxpool.Pool
	store *pgstore.Store
	sql   *sql.DB // on the same pool

	sequences int // so far
}

// The sequence holds the time in microseconds: unlike a row it is read without a
// snapshot and set without a lock.
const virtualClockSQL = `
CREATE SCHEMA model;
CREATE SEQUENCE model.clock MINVALUE 0;
CREATE FUNCTION model.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch' + (SELECT last_value FROM model.clock) * interval '1 microsecond'
$$;
ALTER FUNCTION events_v2_advance SET search_path = model, pg_catalog, public;
ALTER TABLE event_log ALTER created_at SET DEFAULT model.clock_timestamp();
ALTER TABLE scheduling_rules ALTER created_at SET DEFAULT model.clock_timestamp() AT TIME ZONE 'UTC'`

// searchPath finds the function above before that of Postgres.
const searchPath = `model, pg_catalog, public`

// strange are the defaults of a database, a role or a pool on which all is the same.
var strange = map[string]string{
	"default_transaction_isolation": "serializable",
	"DateStyle":                     "SQL, DMY",
	"IntervalStyle":                 "sql_standard",
	"TimeZone":                      "Pacific/Chatham",
	"standard_conforming_strings":   "off",
	"bytea_output":                  "escape",
	"extra_float_digits":            "-15",
	"row_security":                  "off",
	"quote_all_identifiers":         "on",
	"enable_hashjoin":               "off",
	"enable_mergejoin":              "off",
	"enable_bitmapscan":             "off",
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	return newDatabaseWith(t, nil)
}

func newDatabaseWith(t *testing.T, settings map[string]string) *database {
	t.Helper()
	ctx := t.Context()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"search_path": searchPath,
		// While a transaction is open, whatever waits for it waits for ever: that
		// is a difference, too, since in the model nobody waits.
		"lock_timeout": "30s",
		// Planning anew would take longer than the statements.
		"plan_cache_mode": "force_generic_plan",
		"jit":             "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	maps.Copy(config.ConnConfig.RuntimeParams, settings)
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, virtualClockSQL); err != nil {
		t.Fatal(err)
	}
	standard := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = standard.Close() }) // before its pool, which says what is wrong
	return &database{ctx: ctx, pool: pool, store: pgstore.New(pool), sql: standard}
}

// DELETE is faster than TRUNCATE for so few rows, and leaves the plans alone.
const emptySQL = `
DO $$ BEGIN
DELETE FROM events_v2; DELETE FROM event_log; DELETE FROM event_attempts; DELETE FROM scheduling_rules; DELETE FROM unique_keys; DELETE FROM unique_expiries; DELETE FROM event_groups; DELETE FROM concurrency_limits; DELETE FROM rate_limits; DELETE FROM cron_definitions; DELETE FROM event_minutes; DELETE FROM event_hours; DELETE FROM events_v2_settings;
PERFORM setval('events_id_seq', 1, false), setval('scheduling_rules_id_seq', 1, false);
END $$`

// misleadSQL has the planner believe that a table has a single row for ever:
// what a statement does must not depend on its plan. Autovacuum, which finds out
// otherwise, is slower than a sequence.
const (
	misleadEvery = 20 // sequences
	oneRowSQL    = `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES (gen_random_uuid(), '', '', '', '')`
	onePlaceSQL  = `INSERT INTO event_groups (event_id, stage, canvas_id, group_key) VALUES (1, 1, gen_random_uuid(), '')`
	misleadSQL   = `VACUUM (ANALYZE) events_v2, event_groups`
)

const setClockSQL = `SELECT setval('model.clock', $1)`

// world is the two databases in the course of one sequence.
type world struct {
	*database
	now   time.Time                 // of both clocks
	clock atomic.Pointer[time.Time] // the same, for what runs beside the test

	limited bool // the sequence has concurrency limits
	mem     *memstore.Store

	// The transaction that is open in both, if any, and what it is writing.
	pgTx    pgx.Tx
	memTx   *memstore.Tx
	writing map[eventqueue.EventID]bool
	keys    map[eventqueue.UniqueKey]bool // that it has emitted

	// The claim that is under way in Postgres, if any.
	claiming pgx.Tx

	// What operations have returned, for later ones to use.
	lastID  eventqueue.EventID
	claims  []worker.Claim
	grouped map[worker.Claim]bool // what was found with them
	times   []time.Time
}

// newWorld empties the database and makes an empty model.
func newWorld(t rapid.TB, d *database) *world {
	w := &world{database: d, now: time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC), writing: map[eventqueue.EventID]bool{},
		keys: map[eventqueue.UniqueKey]bool{}, grouped: map[worker.Claim]bool{}}
	start := w.now
	w.clock.Store(&start)
	w.mem = memstore.New(memstore.Config{Clock: func() time.Time { return *w.clock.Load() }})
	steps := []string{emptySQL}
	if d.sequences%misleadEvery == 0 {
		steps = []string{emptySQL, oneRowSQL, onePlaceSQL, misleadSQL, emptySQL}
	}
	d.sequences++
	d.store = pgstore.New(d.pool) // without what it remembers of the sequence before
	for _, sql := range steps {
		if _, err := d.pool.Exec(d.ctx, sql); err != nil {
			t.Fatalf("empty the database: %v", err)
		}
	}
	w.setClock(t)
	return w
}

// close ends what a sequence has left open, so that the next one finds no locks.
func (w *world) close() {
	for _, tx := range []pgx.Tx{w.pgTx, w.claiming} {
		if tx != nil {
			_ = tx.Rollback(w.ctx) // what the test thinks of it has been said
		}
	}
}

func (w *world) setClock(t rapid.TB) {
	now := w.now
	w.clock.Store(&now)
	if _, err := w.pool.Exec(w.ctx, setClockSQL, w.now.UnixMicro()); err != nil {
		t.Fatalf("set the clock: %v", err)
	}
}

// in is where an operation writes: the open transaction or one of its own.
type in struct{ pg, mem eventqueue.DB }

func (w *world) drawIn(t *rapid.T) (in, bool) {
	if w.pgTx != nil && rapid.Bool().Draw(t, "inTx") {
		return in{w.pgTx, w.memTx}, true
	}
	return in{}, false
}

// same fails the test when the two answers to an operation differ.
func same[T any](t rapid.TB, what string, pg, mem T) {
	t.Helper()
	if got, want := fmt.Sprintf("%+v", pg), fmt.Sprintf("%+v", mem); got != want {
		t.Fatalf("%s: Postgres and the model differ\n  Postgres: %s\n  model:    %s", what, got, want)
	}
}
