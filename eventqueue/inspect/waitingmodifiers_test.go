package inspect_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestWaitingModifiersAreThoseOfDueEvents: neither of events that run, are not due or wait behind others, nor of other handlers.
// Many events that are not due hide none that was put off and is due by now.
func TestWaitingModifiersAreThoseOfDueEvents(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), onePool(t)
	scope, reader := inspectedScope(), inspect.New(pool)
	elsewhere, nothing := scope, scope
	elsewhere.Canvas[0]++
	nothing.Name = "gree"
	// Neighbours in the index of handlers, of which a search for few events reads nothing.
	const many = 20_000
	for _, sql := range []string{
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1::uuid, $2, name, 'of a neighbour', '1' FROM generate_series(1, 20000), unnest(ARRAY['a', $3 || 'z']) AS name`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1::uuid, $2, $3, m, '1' FROM unnest(ARRAY['b', 'a', '', 'a']) AS m`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, locked_at) VALUES ($1, $2, $3, 'runs', '1', now()), ($1, $2, $3, 'expired', '1', '2020-01-01')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, group_state) VALUES ($1, $2, $3, 'behind', '1', 1)`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, $2, $3 || 'x', 'of another', '1'), ($1, $2 || 'x', $3, 'of another', '1')`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until) SELECT $1::uuid, $2, $3, 'not due', '1', now() + interval '1 hour' FROM generate_series(1, 20000)`,
		`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until, enqueued_at, notified_at) VALUES ($1, $2, $3, 'put off', '1', now() - interval '1 s', '2020-01-01', now())`,
	} {
		if _, err := pool.Exec(ctx, sql, [16]byte(scope.Canvas), scope.Module, scope.Name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO event_workers (number, host, pid, version, handlers) SELECT i, 'host', 1, 'v1', '[]' FROM generate_series(7, 8) AS i`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, $2, $3, 'there', '1')`, [16]byte(elsewhere.Canvas), scope.Module, scope.Name); err != nil {
		t.Fatal(err)
	}
	before, blocks := countRowsRead(t, pool, "events_v2"), indexBlocksRead(t, pool)
	workers, waiting, err := reader.WaitingModifiers(ctx, elsewhere, nothing, scope)
	if err != nil || len(workers) != 2 || workers[1].Number != 8 {
		t.Fatalf("the workers are %+v, %v", workers, err)
	}
	want := map[eventqueue.Scope][]string{scope: {"", "a", "b", "expired", "put off"}, elsewhere: {"there"}}
	if got := fmt.Sprintf("%q", waiting); got != fmt.Sprintf("%q", want) {
		t.Errorf("the modifiers are %s, want %q", got, want)
	}
	if read := countRowsRead(t, pool, "events_v2") - before; read > 600 {
		t.Errorf("it has read %d rows", read)
	}
	if read := indexBlocksRead(t, pool) - blocks; read > many/200 {
		t.Errorf("it has read %d blocks of indexes", read)
	}
}

// indexBlocksRead counts the blocks that have been read of the indexes of events_v2.
func indexBlocksRead(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(testenv.Context(t), `SELECT idx_blks_read + idx_blks_hit FROM pg_statio_user_tables WHERE relname = 'events_v2'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWaitingModifiersWithoutAWorkerOrHandler: nothing is found, and nothing fails.
func TestWaitingModifiersWithoutAWorkerOrHandler(t *testing.T) {
	t.Parallel()
	store := pgstore.New(testenv.Pool(t))
	emit(t, store, 1)
	for _, scopes := range [][]eventqueue.Scope{nil, {inspectedScope()}} {
		workers, waiting, err := inspect.New(store.Pool()).WaitingModifiers(testenv.Context(t), scopes...)
		if err != nil || len(workers) != 0 || len(waiting) != 0 {
			t.Errorf("%v, %v, %v", workers, waiting, err)
		}
	}
}
