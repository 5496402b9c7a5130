package inspect_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestMinutesOfAHandlerAgreeWithMinutes: the minutes of one handler, among those of others, are those that Minutes finds.
func TestMinutesOfAHandlerAgreeWithMinutes(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, completed)
		SELECT date_trunc('minute', now()) - i * interval '1 minute', $1::uuid, m, n, i FROM generate_series(1, 40, 3) AS i, unnest(ARRAY[$2, 'OTHER']) AS m, unnest(ARRAY[$3, 'other']) AS n`,
		[16]byte(scope.Canvas), scope.Module, scope.Name); err != nil {
		t.Fatal(err)
	}
	want, err := reader.Minutes(ctx, inspect.FilterOf(scope), 30*time.Minute, inspect.PerMinute)
	if err != nil {
		t.Fatal(err)
	}
	got, err := reader.MinutesOf(ctx, 30*time.Minute, scope)
	if err != nil || len(want) < 9 || len(got) < len(want)-1 || len(got) > len(want) { // a minute may have passed between them
		t.Fatalf("%d minutes, want %d: %v", len(got), len(want), err)
	}
	for i, m := range got {
		if w := want[len(want)-len(got)+i]; !m.Begins.Equal(w.Begins) || m.Completed != w.Completed || m.Scope != scope {
			t.Errorf("minute %d is %+v, want %+v", i, m, w)
		}
	}
}

// TestCountedSumsTheMinutesOfEachHandler: the sums of the counts of each handler, and MinutesOf of several of them has those of each.
func TestCountedSumsTheMinutesOfEachHandler(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	if _, err := store.Pool().Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled)
		SELECT date_trunc('minute', now()) - i * interval '1 minute', c, m, n, 10000, 1000, 100, 10, 1
		FROM unnest(ARRAY[1, 3, 600]) AS i, unnest(ARRAY[$1::uuid, '00000000-0000-0000-0000-0000000000ff']) AS c, unnest(ARRAY['other', $2]) AS m, unnest(ARRAY[$3, 'other']) AS n`,
		[16]byte(scope.Canvas), scope.Module, scope.Name); err != nil {
		t.Fatal(err)
	}
	other := eventqueue.Scope{Canvas: scope.Canvas, Module: "other", Name: "other"}
	counted, err := reader.Counted(ctx, inspect.Filter{Canvas: &scope.Canvas}, time.Hour)
	if err != nil || len(counted) != 4 || counted[scope] != 22222 || counted[other] != 22222 {
		t.Errorf("the sums are %v, %v", counted, err)
	}
	minutes, err := reader.MinutesOf(ctx, time.Hour, scope, other)
	if err != nil || len(minutes) != 4 || minutes[0].Scope == minutes[1].Scope || minutes[0].Scope != minutes[2].Scope || !minutes[0].Begins.Before(minutes[2].Begins) {
		t.Errorf("the minutes are %+v, %v", minutes, err)
	}
}

// TestRecentErrorsAreOfOneHandler: of events that are tried again and of those that have failed, of this handler alone.
func TestRecentErrorsAreOfOneHandler(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	scope, reader := inspectedScope(), inspect.New(store.Pool())
	ids := emit(t, store, 2)
	for _, sql := range []string{
		`INSERT INTO event_attempts (event_id, attempt, canvas_id, started_at, duration, error)
			SELECT $4, i, $1::uuid, now() - (9 - i) * interval '1 minute', '1 s', 'attempt ' || i || ' of ' || $2::text || $3::text FROM generate_series(1, 3) AS i`,
		`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at, created_at)
			SELECT $4 + 100 + i, $1::uuid, $2, CASE WHEN i = 3 THEN 'other' ELSE $3 END, '_', '{}', (CASE WHEN i = 2 THEN 'COMPLETED' ELSE 'FAILED' END)::event_log_status, 0, 1, 'end ' || i, now(), now() - i * interval '1 minute'
			FROM generate_series(1, 4) AS i`,
	} {
		if _, err := store.Pool().Exec(ctx, sql, [16]byte(scope.Canvas), scope.Module, scope.Name, ids[1]); err != nil {
			t.Fatal(err)
		}
	}
	found, err := reader.RecentErrors(ctx, scope, 3)
	if err != nil || len(found) != 3 || found[0].Error != "end 1" || !found[0].Failed || found[1].Error != "end 4" || found[2].Event != ids[1] || found[2].Failed {
		t.Errorf("the errors are %+v, %v", found, err)
	}
}

// TestHeldShowsTheLocksOfEachWorker: what each worker has in hand, from what its locks say, and nothing of runs that have not begun.
func TestHeldShowsTheLocksOfEachWorker(t *testing.T) {
	t.Parallel()
	ctx, store := testenv.Context(t), pgstore.New(testenv.Pool(t))
	ids := emit(t, store, 12)
	claim := eventqueue.WorkerNumber(7).Claim(5)
	if _, err := store.Pool().Exec(ctx, `UPDATE events_v2 SET locked_at = now(), begun = id <> $2, attempts = 3, claim_id = $1::bigint + 3 WHERE id < $3`, claim, ids[0], ids[11]); err != nil {
		t.Fatal(err)
	}
	held, more, err := inspect.New(store.Pool()).Held(ctx)
	if err != nil || more || len(held) != 1 || held[7] == nil || held[7].Count != 10 || len(held[7].Oldest) != 5 || held[7].Oldest[0].ID != ids[1] {
		t.Errorf("held: %+v, %t, %v", held, more, err)
	}
}

// onePool makes a pool with one connection, which reports what it has read.
func onePool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	config := testenv.Pool(t).Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// countRowsRead returns how many rows of a table have been read so far.
func countRowsRead(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if _, err := pool.Exec(testenv.Context(t), `SELECT pg_stat_force_next_flush()`); err != nil {
		t.Fatal(err)
	}
	if err := pool.QueryRow(testenv.Context(t), `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1`, table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCountsAreReadByTheirIndex: a read of the counts of the last minutes does not read those of all days.
func TestCountsAreReadByTheirIndex(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), onePool(t)
	const old = 3000
	if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, pending)
		SELECT now() - i * interval '1 minute', gen_random_uuid(), 'm', 'n', 1 FROM generate_series(1000, 999 + $1) AS i`, old); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `ANALYZE event_minutes`); err != nil { // as autovacuum does
		t.Fatal(err)
	}
	read := func() int { return countRowsRead(t, pool, "event_minutes") }
	scope, reader := inspectedScope(), inspect.New(pool)
	for name, ask := range map[string]func() error{
		"Totals": func() error {
			_, err := reader.Totals(ctx, true, []eventqueue.CanvasID{scope.Canvas}, time.Hour)
			return err
		},
		"HandlersPending": func() error { _, err := reader.HandlersPending(ctx); return err },
		"Pulse":           func() error { _, err := reader.Pulse(ctx); return err },
		"Activities":      func() error { _, err := reader.Activities(ctx, true, nil); return err },
		"Minutes": func() error {
			_, err := reader.Minutes(ctx, inspect.Filter{}, time.Hour, inspect.PerMinute)
			return err
		},
		"MinutesOf": func() error { _, err := reader.MinutesOf(ctx, time.Hour, scope); return err },
		"Counted":   func() error { _, err := reader.Counted(ctx, inspect.Filter{}, time.Hour); return err },
	} {
		before := read()
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		if n := read() - before; n >= old {
			t.Errorf("%s reads %d rows, all that there are", name, n)
		}
	}
}
