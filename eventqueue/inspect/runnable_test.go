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

// queueOf is a queue of a test of Runnable.
type queueOf struct {
	*testing.T
	pool   *pgxpool.Pool
	store  *pgstore.Store
	reader *inspect.Reader
}

func newQueueOf(t *testing.T) *queueOf {
	t.Helper()
	pool := testenv.Pool(t)
	return &queueOf{t, pool, pgstore.New(pool), inspect.New(pool)}
}

// TestRunnableCountsItsOwnSchema, whatever the search path and the isolation of the connection are.
func TestRunnableCountsItsOwnSchema(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURLIn(t, "jobs")) // with a queue in public as well
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	pool, err := pgxpool.NewWithConfig(testenv.Context(t), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	q := &queueOf{t, pool, pgstore.NewIn("jobs", pool), inspect.NewIn("jobs", pool)}
	q.emit(5, 1, "greet", "")
	q.emit(4, 1, "greet", "a key")
	q.want("five, and one of a key", 6)
	public := &queueOf{t, pool, pgstore.New(pool), inspect.New(pool)}
	public.want("in public", 0)
}

func (q *queueOf) exec(sql string, args ...any) {
	q.Helper()
	if _, err := q.pool.Exec(testenv.Context(q.T), sql, args...); err != nil {
		q.Fatalf("%s: %v", sql, err)
	}
}

// emit adds n events of a handler on a canvas of its own number.
func (q *queueOf) emit(n int, canvas byte, name, key string) (ids []eventqueue.EventID) {
	q.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: eventqueue.CanvasID{canvas}, Module: "WORKER", Name: name, Modifier: "_", Value: []byte(`1`), OrderingKey: key}
	}
	inserted, err := q.store.Insert(testenv.Context(q.T), nil, events, eventqueue.NotifyModeSelf)
	if err != nil {
		q.Fatal(err)
	}
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// want requires a number of what could run.
func (q *queueOf) want(what string, want int) {
	q.Helper()
	if n, err := q.reader.Runnable(testenv.Context(q.T), 1000); n != want || err != nil {
		q.Errorf("%s: %d could run, want %d, %v", what, n, want, err)
	}
}

// TestRunnableCountsWhatCouldRun and what runs: for that, workers are needed.
func TestRunnableCountsWhatCouldRun(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	q.want("an empty queue", 0)
	ids := q.emit(5, 1, "greet", "")
	q.emit(4, 2, "greet", "")
	q.want("nine due events", 9)
	if n, err := q.reader.Runnable(testenv.Context(t), 7); n != 7 || err != nil {
		t.Errorf("of at most 7: %d, %v", n, err)
	}
	if n, err := q.reader.Runnable(testenv.Context(t), 0); err == nil {
		t.Errorf("of at most 0: %d and no error", n)
	}
	q.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 hour' WHERE id = $1`, ids[0])
	q.want("one is delayed", 8)
	q.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = 1 WHERE id = $1`, ids[1])
	q.want("one runs", 8)
	q.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes' WHERE id = $1`, ids[1])
	q.want("its lock has expired", 8)
	q.exec(`UPDATE events_v2 SET enqueued_at = clock_timestamp() - interval '2 hours', delay_until = clock_timestamp() - interval '1 hour' WHERE id = $1`, ids[0])
	q.want("the delay is over", 9)
}

// TestOldestPendingIsTheLongestDueWait is the wait of the notification that has been due the longest; one to come waits for nobody yet.
func TestOldestPendingIsTheLongestDueWait(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	want := func(what string, from, to time.Duration) {
		t.Helper()
		if oldest, err := q.reader.OldestPending(testenv.Context(t)); oldest < from || oldest > to || err != nil {
			t.Errorf("%s: %s, %v", what, oldest, err)
		}
	}
	ids := q.emit(3, 1, "greet", "")
	q.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() - interval '2 hours'`)
	want("all have a notification", 0, 0)
	q.exec(`UPDATE events_v2 SET notified_at = NULL, delay_until = clock_timestamp() + interval '1 hour' WHERE id = $1`, ids[0])
	want("one is due later", 0, 0)
	q.exec(`UPDATE events_v2 SET notified_at = NULL, delay_until = clock_timestamp() - interval '1 hour' WHERE id = $1`, ids[1])
	want("one has waited for an hour", time.Hour, 2*time.Hour-time.Second)
}

// TestRunnableLeavesOutPausedAndDelayedEvents, however much it is, and knows at once when a rule is lifted.
func TestRunnableLeavesOutPausedAndDelayedEvents(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	q.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value) SELECT $1::uuid, 'WORKER', 'greet', '_', '1' FROM generate_series(1, 10000)`,
		[16]byte{1})
	q.exec(`ANALYZE events_v2`)
	q.want("ten thousand", 1000)
	for what, rule := range map[string]string{
		"paused":            `('pause', 'greet', '', false)`,
		"blocked":           `('block', 'greet', '', false)`,
		"a prefix paused":   `('pause', 'gr', '', true)`,
		"a modifier paused": `('pause', 'greet', '_', false)`,
	} {
		q.exec(`INSERT INTO scheduling_rules (canvas_id, event_space, rule_type, handler_name, modifier, prefix)
			SELECT $1::uuid, 'WORKER', t::scheduling_rule_type, n, m, p FROM (VALUES `+rule+`) AS of (t, n, m, p)`, [16]byte{1})
		q.want(what, 0)
		q.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = 1 WHERE id = (SELECT min(id) FROM events_v2)`)
		q.want(what+", and one still runs", 1)
		q.exec(`UPDATE events_v2 SET locked_at = NULL WHERE locked_at IS NOT NULL`)
		q.exec(`DELETE FROM scheduling_rules`)
	}
	q.want("lifted", 1000)
	// Released up to an id, as while a rule is lifted at a rate.
	q.exec(`INSERT INTO scheduling_rules (canvas_id, event_space, rule_type, handler_name, rate, released_to, released_at)
		SELECT $1::uuid, 'WORKER', 'pause', 'greet', 1, (SELECT min(id) + 9 FROM events_v2), clock_timestamp()`, [16]byte{1})
	q.want("ten are released", 10)
	q.emit(3, 9, "greet", "")
	q.want("another canvas", 13)
}

// TestRunnableRespectsGroupsAndLimits before and after events join their groups: without a worker, none does.
func TestRunnableRespectsGroupsAndLimits(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	ids := q.emit(10, 1, "ship", "one")
	q.emit(5, 1, "ship", "two")
	q.want("two keys", 2)
	if _, err := q.store.Advance(testenv.Context(t), nil, ids); err != nil {
		t.Fatal(err)
	}
	q.want("two keys, and one group has advanced", 2)
	q.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), attempts = 1 WHERE id = $1`, ids[0])
	q.want("two keys, and an event of one runs", 2)

	q.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, events_v2_group_key(2, 'WORKER', 'mail', ''), 3)`, [16]byte{2})
	ids = q.emit(10, 2, "mail", "")
	q.want("a limit of three", 2+3)
	if _, err := q.store.Advance(testenv.Context(t), nil, ids[:1]); err != nil {
		t.Fatal(err)
	}
	q.want("a limit of three, and one is admitted", 2+3)
	q.emit(10, 2, "call", "")
	q.want("another handler of that canvas", 2+3+10)
	q.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, 'canvas', 4)`, [16]byte{2})
	q.want("a limit of four for the canvas", 2+1+4)

	q.exec(`INSERT INTO rate_limits (canvas_id, module, name, per_minute) VALUES ($1, 'WORKER', 'greet', 7)`, [16]byte{3})
	q.emit(10, 3, "greet", "")
	q.want("seven per minute", 7+7)
	q.exec(`UPDATE rate_counters SET minute_at = date_bin('1 minute', clock_timestamp() + interval '1 minute', 'epoch'), minute_count = 5`)
	q.want("five have run in this minute", 7+2)
	q.exec(`INSERT INTO rate_limits (canvas_id, per_day) VALUES ($1, 1)`, [16]byte{3})
	q.want("one per day of the canvas", 7+1)
	q.exec(`UPDATE rate_counters SET day_at = date_bin('1 day', clock_timestamp() + interval '1 day', 'epoch'), day_count = 1`)
	q.want("which has run", 7)
}

// TestEventWithoutAHandlerNeedsNoWorker: an event for which there has never been a handler needs no worker. As long as there
// has been no worker at all, nobody can tell.
func TestEventWithoutAHandlerNeedsNoWorker(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	q.emit(5, 1, "greet", "")
	q.want("before the first worker", 5)
	for i, c := range []struct {
		handlers string
		want     int
	}{
		{`[]`, 5},
		{`[{"module": "WORKER", "name": "other", "modifier": "_"}]`, 0},
		{`[{"module": "WORKER", "name": "greet", "modifier": "v2"}]`, 0},
		{`[{"module": "WORKER", "name": "greet", "modifier": "_", "canvas_id": "02000000-0000-0000-0000-000000000000"}]`, 0},
		{`[{"module": "WORKER", "name": "greet", "modifier": "_", "canvas_id": "01000000-0000-0000-0000-000000000000"}]`, 5},
		{`[{"module": "WORKER", "name": "greet", "modifier": "_"}]`, 5},
	} {
		q.exec(`DELETE FROM event_workers`)
		q.exec(`INSERT INTO event_workers (number, host, pid, version, handlers, stopped_at) VALUES ($1, 'h', 1, 'v', $2, clock_timestamp())`, i, c.handlers)
		q.want(c.handlers, c.want)
	}
}

// TestRunnableCostIsIndependentOfTheBacklog (I12): it reads by index, and no more than its bounds.
func TestRunnableCostIsIndependentOfTheBacklog(t *testing.T) {
	t.Parallel()
	q := newQueueOf(t)
	q.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, delay_until)
		SELECT $1::uuid, 'WORKER', 'greet', '_', '1', clock_timestamp() + interval '1 day' FROM generate_series(1, 20000)`, [16]byte{1})
	tx, err := q.pool.Begin(testenv.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(testenv.Context(t)) }()
	var n, walked, fetched int
	if err := tx.QueryRow(testenv.Context(t), `SELECT events_v2_runnable()`).Scan(&n); err != nil || n != 0 {
		t.Fatal(n, err)
	}
	if err := tx.QueryRow(testenv.Context(t), `SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'events_v2'`).Scan(&walked, &fetched); err != nil {
		t.Fatal(err)
	}
	if walked != 0 || fetched > 3000 {
		t.Errorf("it read %d rows of the table and %d by index, of 20,000 delayed events", walked, fetched)
	}
}
