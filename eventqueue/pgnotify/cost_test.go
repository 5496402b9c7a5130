package pgnotify

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/test/testenv"
)

func TestWaitingAndAcknowledgingSendNothing(t *testing.T) {
	t.Parallel()
	pool, c := countedPool(t)
	n := open(t, pool, Config{Lease: 10 * time.Minute})
	publish(t, n, 1, 10)
	held := pullAll(t, n, 1, 10, false)
	came := waitingPull(t, n)
	awaitListeners(t, pool, 1)
	quietFor(t, c, 2*time.Second)

	before := c.statements()
	if err := n.Requeue(testenv.Context(t), held, time.Minute); err != nil {
		t.Fatal(err)
	}
	ack(t, n, held)
	if sent := c.statements() - before; sent != 0 {
		t.Errorf("extending and acknowledging sent %d statements", sent)
	}
	select {
	case p := <-came:
		t.Errorf("a pull of nothing ended: %+v", p)
	default:
	}

	// One notification: its publish, the poll that takes it, and at most one more
	// for the rows that the first one may have passed over.
	publish(t, n, 11, 11)
	ack(t, n, (<-came).deliveries)
	waitingPull(t, n)
	quietFor(t, c, 2*time.Second)
	if sent := c.statements() - before; sent > 3 {
		t.Errorf("one notification cost %d statements, want at most 3", sent)
	}
}

// takeCost is how many blocks Postgres touches for one take. Nothing is taken.
func takeCost(t *testing.T, pool *pgxpool.Pool, above int64, limit int) int {
	t.Helper()
	ctx := testenv.Context(t)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // that is the point
	var text []byte
	if err := tx.QueryRow(ctx, `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) `+takeSQL, takeMode, above, int64(limit)).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct {
		Plan struct {
			Rows int `json:"Actual Rows"`
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	if plans[0].Plan.Rows != limit {
		t.Fatalf("the plan returned %d rows, want %d: %s", plans[0].Plan.Rows, limit, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// TestBacklogDrainsAtConstantCost drains 100,000 notifications while a long
// transaction keeps Postgres from cleaning up anything, and compares what a pull
// costs at its beginning and at its end.
func TestBacklogDrainsAtConstantCost(t *testing.T) {
	t.Parallel()
	const count, batch, few = 100_000, 500, 50
	ctx := t.Context()
	pool, c := countedPool(t)
	n := open(t, pool, Config{})
	// A statement planned while the table is empty must not keep its plan.
	if _, _, err := n.take(ctx, 0, batch); err != nil {
		t.Fatal(err)
	}
	publish(t, n, 1, count)
	long, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Rollback(ctx) }() // it only reads
	if _, err := long.Exec(ctx, `SELECT count(*) FROM events_v2_notifications`); err != nil {
		t.Fatal(err)
	}

	first := takeCost(t, pool, 0, few)
	before, pulls := c.statements(), 0
	for taken := 0; taken < count-batch; pulls++ {
		deliveries, err := n.Pull(ctx, batch)
		if err != nil {
			t.Fatal(err)
		}
		taken += len(deliveries)
		ack(t, n, deliveries)
	}
	statements := c.statements() - before
	last := takeCost(t, pool, n.marks.highest, few)
	fromStart := takeCost(t, pool, 0, few)
	t.Logf("blocks of one pull of %d: %d at the beginning, %d at the end, %d at the end without a mark; %d pulls, %d statements",
		few, first, last, fromStart, pulls, statements)
	if last > 2*first {
		t.Errorf("a pull at the end touches %d blocks, and %d at the beginning", last, first)
	}
	if fromStart < 2*first {
		t.Errorf("without a mark a pull at the end touches %d blocks, and %d at the beginning: this test shows nothing", fromStart, first)
	}
	if most := count/batch + 10; statements > most { // LISTEN and its probe, and what another poll took
		t.Errorf("%d statements for %d notifications, more than %d", statements, count, most)
	}
}
