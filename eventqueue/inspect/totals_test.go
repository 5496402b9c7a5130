package inspect_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// TestTotalsSumTheMinutes are the sums of the rows of a minute, of all canvases and of some.
func TestTotalsSumTheMinutes(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	first, second, third := eventqueue.CanvasID{15: 1}, eventqueue.CanvasID{15: 2}, eventqueue.CanvasID{15: 3}
	var now time.Time
	if err := pool.QueryRow(ctx, `SELECT date_trunc('minute', now(), 'UTC')`).Scan(&now); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		ago     int
		canvas  eventqueue.CanvasID
		name    string
		n       int64
		waits   []int64
		pending *int64
	}{
		{1, first, "a", 1, []int64{1, 2}, new(int64(5))},
		{1, first, "b", 10, []int64{}, nil},
		{1, second, "a", 100, []int64{0, 0, 0, 7}, new(int64(6))},
		{1, third, "a", 1000, append(make([]int64, minutes.Buckets-1), 9), nil},
		{3, first, "a", 2, []int64{4}, nil},
		{600, first, "a", 5, []int64{4}, nil}, // too long ago
	} {
		if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
			VALUES ($1, $2, 'M', $3, $4::bigint, 2 * $4, 3 * $4, 4 * $4, 5 * $4, $5, $6, $4 * interval '1 s')`,
			now.Add(-time.Duration(row.ago)*time.Minute), [16]byte(row.canvas), row.name, row.n, row.waits, row.pending); err != nil {
			t.Fatal(err)
		}
	}
	type total struct {
		ago     int
		n       int64
		waits   minutes.Histogram
		pending int64
		oldest  time.Duration
	}
	ofFirst := []total{{3, 2, minutes.Histogram{4}, 0, 2 * time.Second}, {1, 11, minutes.Histogram{1, 2}, 5, 10 * time.Second}}
	ofSecond := []total{{1, 100, minutes.Histogram{0, 0, 0, 7}, 6, 100 * time.Second}}
	sum := append(minutes.Histogram{1, 2, 0, 7}, make([]int64, minutes.Buckets-4)...)
	sum[minutes.Buckets-1] = 9
	ofAll := []total{{3, 2, minutes.Histogram{4}, 0, 2 * time.Second}, {1, 1111, sum, 11, 1000 * time.Second}}
	for _, c := range []struct {
		all      bool
		canvases []eventqueue.CanvasID
		want     map[eventqueue.CanvasID][]total
	}{
		{true, nil, map[eventqueue.CanvasID][]total{{}: ofAll}},
		{true, []eventqueue.CanvasID{first, second}, map[eventqueue.CanvasID][]total{{}: ofAll, first: ofFirst, second: ofSecond}},
		{false, []eventqueue.CanvasID{second}, map[eventqueue.CanvasID][]total{second: ofSecond}},
		{false, nil, map[eventqueue.CanvasID][]total{}},
	} {
		found, err := inspect.New(pool).Totals(ctx, c.all, c.canvases, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		got := map[eventqueue.CanvasID][]total{}
		for canvas, list := range found {
			for _, m := range list {
				sums := total{ago: int(now.Sub(m.Begins).Minutes()), n: m.Emitted, waits: m.Wait}
				if m.Pending != nil {
					sums.pending = *m.Pending
				}
				if m.OldestDue != nil {
					sums.oldest = *m.OldestDue
				}
				got[canvas] = append(got[canvas], sums)
				if m.Completed != 2*sums.n || m.Failed != 3*sums.n || m.Retried != 4*sums.n || m.Cancelled != 5*sums.n || m.AsOf.Before(now) {
					t.Errorf("the counts of a minute are %+v", m)
				}
			}
		}
		if !maps.EqualFunc(got, c.want, func(a, b []total) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("all: %t, %v: got %+v, want %+v", c.all, c.canvases, got, c.want)
		}
	}
}

// TestTotalsIncludeSummarizedMinutes are the same, and read nothing of their rows.
func TestTotalsIncludeSummarizedMinutes(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), testenv.Pool(t)
	large, small, tiny := eventqueue.CanvasID{15: 1}, eventqueue.CanvasID{15: 2}, eventqueue.CanvasID{15: 3}
	// Of the large canvas each minute has 30 handlers, of the small one three, of the third one in some minutes.
	if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
		SELECT date_trunc('minute', now(), 'UTC') - m * interval '1 minute', CASE WHEN h < 30 THEN $1::uuid WHEN h < 33 THEN $2 ELSE $3 END, 'M', 'h' || h, h, m, 1, 2, 3,
		    CASE WHEN h % 2 = 0 THEN array_fill(h::bigint, ARRAY[1 + h % 7]) ELSE '{}' END, nullif(h, 5), nullif(m, 4) * interval '1 s'
		FROM generate_series(0, 17) AS m, generate_series(0, 33) AS h WHERE m % 6 > 0 AND (h < 33 OR m % 5 = 0)`, [16]byte(large), [16]byte(small), [16]byte(tiny)); err != nil {
		t.Fatal(err)
	}
	reader, store := inspect.New(pool), pgstore.New(pool)
	read := func() map[eventqueue.CanvasID][]inspect.Minute {
		t.Helper()
		totals, err := reader.Totals(ctx, true, []eventqueue.CanvasID{large, small, tiny}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range totals {
			for i := range list {
				list[i].AsOf = time.Time{}
			}
		}
		return totals
	}
	want := read()
	if len(want) != 4 || len(want[large]) != 15 {
		t.Fatalf("there are sums of %d parts, and %d minutes of one", len(want), len(want[large]))
	}
	for _, more := range []bool{true, false, false} { // pages of ten minutes
		if got, err := store.SumMinutes(ctx); err != nil || got != more {
			t.Fatalf("SumMinutes: %t, %v", got, err)
		}
		if got := read(); !reflect.DeepEqual(got, want) {
			t.Errorf("with sums, the totals are\n%+v, and not\n%+v", got, want)
		}
	}
	// Of the large canvas the rows are gone, and of the others those of the newest minutes are there.
	if _, err := pool.Exec(ctx, `DELETE FROM event_minutes m USING event_minute_totals t WHERE t.minute = m.minute AND t.canvas_id = m.canvas_id`); err != nil {
		t.Fatal(err)
	}
	if got := read(); !reflect.DeepEqual(got, want) {
		t.Errorf("without rows that are summed up, the totals are\n%+v, and not\n%+v", got, want)
	}
	var parts string
	if err := pool.QueryRow(ctx, `SELECT concat(count(*) FILTER (WHERE of_all) = count(*) FILTER (WHERE canvas_id = $1), ' ', count(*) FILTER (WHERE canvas_id IN ($2, $3))) FROM event_minute_totals`,
		[16]byte(large), [16]byte(small), [16]byte(tiny)).Scan(&parts); err != nil || parts != "t 0" {
		t.Errorf("there are sums of their own of other canvases than the large one: %s, %v", parts, err)
	}
}
