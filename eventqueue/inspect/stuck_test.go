package inspect_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// openStore is a store on a pool as the programs have it.
func openStore(t *testing.T) *pgstore.Store {
	t.Helper()
	pool, err := pgstore.Open(testenv.Context(t), testenv.DatabaseURL(t), "test", 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pgstore.New(pool)
}

func exec(t *testing.T, store *pgstore.Store, sql string, args ...any) {
	t.Helper()
	if _, err := store.Pool().Exec(testenv.Context(t), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

var long = inspect.StuckAfter{Unclaimed: 5 * time.Minute, Attempts: 10}

// TestStuckSeparatesWaitingEventsFromStuckOnes has events in every state.
func TestStuckSeparatesWaitingEventsFromStuckOnes(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	exec(t, store, `INSERT INTO events_v2 (id, canvas_id, module, name, modifier, value, attempts, enqueued_at, delay_until, locked_at)
		SELECT id, $1, 'WORKER', name, '_', '1', attempts, now() - interval '2 h', now() + due::interval, now() - locked::interval
		FROM (VALUES
			(1, 'greet', 0, '-1 min', NULL),       -- due for a minute
			(2, 'greet', 0, '-6 min', NULL),       -- unclaimed
			(3, 'greet', 1, '-6 min', '10 s'),     -- running
			(4, 'greet', 1, '-90 min', '80 min'),  -- expired
			(5, 'greet', 0, '5 min', NULL),        -- delayed
			(6, 'greet', 10, '5 min', NULL),       -- delayed between two of many attempts
			(7, 'greet', 12, '-90 min', '10 s'),   -- running for the umpteenth time
			(8, 'greet', 11, '-90 min', '80 min'), -- expired for the umpteenth time
			(9, 'paused', 0, '-6 min', NULL),
			(10, 'paused', 11, '-90 min', '80 min'),
			(11, 'blocked', 0, '-6 min', NULL),
			(12, 'greet', 9, '-1 min', NULL)
		) AS v (id, name, attempts, due, locked)`, [16]byte(inspectedScope().Canvas))
	exec(t, store, `INSERT INTO scheduling_rules (rule_type, canvas_id, event_space, handler_name)
		VALUES ('pause', $1, 'WORKER', 'paused'), ('block', $1, 'WORKER', 'blocked')`, [16]byte(inspectedScope().Canvas))
	found, err := inspect.New(store.Pool()).Stuck(testenv.Context(t), inspect.Filter{}, long, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		id      eventqueue.EventID
		state   inspect.State
		reasons string
		since   time.Duration // ago
	}
	want := []row{
		{2, inspect.Waiting, "unclaimed", 6 * time.Minute},
		{4, inspect.Expired, "expired", 79 * time.Minute},
		{6, inspect.Delayed, "repeated", 2 * time.Hour},
		{7, inspect.Running, "repeated", 2 * time.Hour},
		{8, inspect.Expired, "expired repeated", 79 * time.Minute},
	}
	var got []row
	for _, e := range found {
		var reasons []string
		for _, reason := range e.Reasons {
			reasons = append(reasons, string(reason))
		}
		got = append(got, row{e.ID, e.State, strings.Join(reasons, " "), e.AsOf.Sub(e.Since).Truncate(time.Minute)})
	}
	if !slices.Equal(got, want) {
		t.Errorf("stuck are %v, want %v", got, want)
	}
}

// TestStuckReadsNoOtherRows lists one canvas, and all canvases, beside 45,000 events of
// others.
func TestStuckReadsNoOtherRows(t *testing.T) {
	t.Parallel()
	store := openStore(t)
	ctx := testenv.Context(t)
	exec(t, store, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until)
		SELECT ('00000000-0000-4000-8000-' || lpad((id % 100)::text, 12, '0'))::uuid, 'WORKER', 'name' || id % 7, '_', '1', now() - interval '1 h',
			now() + CASE WHEN id % 450 = 0 THEN '-10 min' ELSE '1 h' END::interval
		FROM generate_series(1, 45000) AS id`)
	emit(t, store, 50)
	exec(t, store, `UPDATE events_v2 SET enqueued_at = now() - interval '1 h', delay_until = now() - interval '10 min' WHERE canvas_id = $1`,
		[16]byte(inspectedScope().Canvas))
	exec(t, store, `VACUUM (ANALYZE) events_v2`)
	canvas := inspectedScope().Canvas
	plan, err := inspect.New(store.Pool()).ExplainStuck(ctx, inspect.Filter{Canvas: &canvas}, long)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan, "Seq Scan on events_v2 ") || !strings.Contains(plan, "Index Scan using events_v2_handler") {
		t.Errorf("a look at one canvas does not follow the index:\n%s", plan)
	}
	if n := lookedAt(t, plan); n != 50 {
		t.Errorf("a look at one canvas of 50 events reads %d:\n%s", n, plan)
	}
	if plan, err = inspect.New(store.Pool()).ExplainStuck(ctx, inspect.Filter{}, long); err != nil {
		t.Fatal(err)
	}
	if n := lookedAt(t, plan); n != 20_000 {
		t.Errorf("a statement that looks at all canvases reads %d events, want 20000:\n%s", n, plan)
	}

	// Page by page, over many statements: every event once, by id.
	count := func(filter inspect.Filter) (n int) {
		t.Helper()
		for after := eventqueue.EventID(0); ; {
			page, err := inspect.New(store.Pool()).Stuck(ctx, filter, long, after, 40)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				if e.ID <= after {
					t.Fatalf("event %s comes after %s", e.ID, after)
				}
				after = e.ID
			}
			n += len(page)
			if len(page) < 40 {
				return n
			}
		}
	}
	if n := count(inspect.Filter{}); n != 150 {
		t.Errorf("%d events are stuck, want 150", n)
	}
	if n := count(inspect.Filter{Canvas: &canvas}); n != 50 {
		t.Errorf("%d events of the canvas are stuck, want 50", n)
	}
	if n := count(inspect.Filter{Name: "name3"}); n != 14 {
		t.Errorf("%d events of the name are stuck, want 14", n)
	}
}

// lookedAt is how many rows of events_v2 a plan has read.
func lookedAt(t *testing.T, plan string) int {
	t.Helper()
	scan := regexp.MustCompile(`on events_v2 .*\(actual rows=([0-9]+)`).FindStringSubmatch(plan)
	if scan == nil {
		t.Fatalf("no scan of events_v2 in the plan:\n%s", plan)
	}
	n, err := strconv.Atoi(scan[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
