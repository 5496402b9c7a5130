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

// TestTotalsOfADayReadFewRows: those of the last minutes, which cron has not summed up yet, and those of canvases that have few. Where
// cron has summed up nothing, the last two hours are read, and what is older is said to be unknown.
func TestTotalsOfADayReadFewRows(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), onePool(t)
	large, small := eventqueue.CanvasID{15: 1}, eventqueue.CanvasID{15: 2}
	const day, handlers, few = 1440, 30, 2
	if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, waits)
		SELECT date_trunc('minute', now(), 'UTC') - m * interval '1 minute', CASE WHEN h <= $3 THEN $1::uuid ELSE $2 END, 'M', 'h' || h, 1, '{1}'
		FROM generate_series(0, $5::int) AS m, generate_series(1, $3::int + $4) AS h`, [16]byte(large), [16]byte(small), handlers, few, day); err != nil {
		t.Fatal(err)
	}
	reader := inspect.New(pool)
	totals := func(most int) map[eventqueue.CanvasID][]inspect.Minute {
		t.Helper()
		if _, err := pool.Exec(ctx, `ANALYZE event_minutes, event_minute_totals`); err != nil { // as autovacuum does
			t.Fatal(err)
		}
		before := countRowsRead(t, pool, "event_minutes")
		totals, err := reader.Totals(ctx, true, []eventqueue.CanvasID{large, small}, day*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if n := countRowsRead(t, pool, "event_minutes") - before; n > most {
			t.Errorf("%d rows are read, more than %d", n, most)
		}
		return totals
	}
	for part, list := range totals(121*(2*handlers+2*few) + 3*day) { // of others it is asked whether there are some
		if len(list) < day || len(list) > day+1 {
			t.Errorf("of %s there are %d minutes", part, len(list))
		}
		for i := range list {
			if old := list[i].AsOf.Sub(list[i].Begins) > 121*time.Minute; list[i].Unsummed != old && (old || list[i].AsOf.Sub(list[i].Begins) < 2*time.Hour) {
				t.Errorf("of %s, the minute %s is unknown: %t", part, list[i].Begins, list[i].Unsummed)
			}
		}
	}
	if _, err := pool.Exec(ctx, `INSERT INTO event_minute_totals (minute, of_all, canvas_id, emitted, completed, failed, retried, cancelled, waits)
		SELECT minute, p.of_all, p.canvas_id, p.n, 0, 0, 0, 0, ARRAY[p.n]
		FROM (SELECT DISTINCT minute FROM event_minutes WHERE minute < now() - interval '4 minutes') AS m,
		    (VALUES (true, '00000000-0000-0000-0000-000000000000'::uuid, $2::int + $3), (false, $1, $2)) AS p (of_all, canvas_id, n)`, [16]byte(large), handlers, few); err != nil {
		t.Fatal(err)
	}
	for part, list := range totals(6*(2*handlers+2*few) + few*day) {
		want := map[eventqueue.CanvasID]int64{{}: handlers + few, large: handlers, small: few}[part]
		for i := range list {
			if m := &list[i]; m.Unsummed || m.Emitted != want || m.Wait.Count() != want {
				t.Errorf("of %s, the minute %s has %+v", part, m.Begins, m)
			}
		}
		if len(list) < day {
			t.Errorf("of %s there are %d minutes", part, len(list))
		}
	}
}

// TestHourTotalsSumTheHours are the sums of the counts of each hour, of all canvases and of some, with the highest sum of what was pending in a
// minute. They are read without those of the handlers, and Until says where the minutes begin that are not among them.
func TestHourTotalsSumTheHours(t *testing.T) {
	t.Parallel()
	ctx, pool := testenv.Context(t), onePool(t)
	first, second := eventqueue.CanvasID{15: 1}, eventqueue.CanvasID{15: 2}
	// Of the two handlers of a canvas, one has much pending in every minute that is even, and the other in every one that is odd.
	if _, err := pool.Exec(ctx, `INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, cancelled, waits, pending, oldest_due)
		SELECT date_trunc('hour', now(), 'UTC') - m * interval '10 minutes', CASE WHEN h < 2 THEN $1::uuid ELSE $2 END, 'M', 'h' || h, 1, 2, 3, 4, 5, CASE WHEN h = 2 THEN '{0, 7}'::bigint[] ELSE '{1}' END,
		    CASE WHEN m % 2 = h % 2 THEN 100 ELSE 1 END, interval '1 minute'
		FROM generate_series(1, 180) AS m, generate_series(0, 2) AS h`, [16]byte(first), [16]byte(second)); err != nil {
		t.Fatal(err)
	}
	reader, store := inspect.New(pool), pgstore.New(pool)
	sums, err := reader.HourTotals(ctx, true, []eventqueue.CanvasID{first}, 48*time.Hour)
	if err != nil || len(sums.Of) > 0 || !sums.Until.IsZero() || sums.Ago != 48*time.Hour {
		t.Errorf("before cron has summed up, there are %+v, %v", sums, err)
	}
	for more := true; more; {
		if more, err = store.SumHour(ctx); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (n int) {
		t.Helper()
		for _, table := range []string{"event_minutes", "event_hours", "event_minute_totals"} {
			n += countRowsRead(t, pool, table)
		}
		return n
	}
	before := rows()
	if sums, err = reader.HourTotals(ctx, true, []eventqueue.CanvasID{first, second}, 7*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if n := rows() - before; n > 0 {
		t.Errorf("%d rows of handlers and minutes are read", n)
	}
	for part, want := range map[eventqueue.CanvasID]struct{ handlers, second, pending int64 }{{}: {3, 1, 201}, first: {2, 0, 101}, second: {1, 1, 100}} {
		list := sums.Of[part]
		if len(list) < 29 || len(list) > 30 { // the last hour is summed up when it is over for some minutes
			t.Fatalf("of %s there are %d hours", part, len(list))
		}
		for i := range list {
			m := &list[i]
			n := 6 * want.handlers
			waits := minutes.Histogram{6 * (want.handlers - want.second), 42 * want.second}.Trimmed()
			if m.Emitted != n || m.Completed != 2*n || m.Failed != 3*n || m.Retried != 4*n || m.Cancelled != 5*n || !reflect.DeepEqual(m.Wait, waits) ||
				m.Pending == nil || *m.Pending != want.pending || m.OldestDue == nil || *m.OldestDue != time.Minute || m.Unsummed {
				t.Errorf("of %s, the hour %s has %+v", part, m.Begins, m)
			}
		}
		if last := list[len(list)-1]; !sums.Until.Equal(last.Begins.Add(time.Hour)) || sums.Ago < last.AsOf.Sub(sums.Until)-time.Minute || sums.Ago > last.AsOf.Sub(sums.Until) {
			t.Errorf("of %s, the hours end with %s, and are said to end at %s, %s ago", part, last.Begins, sums.Until, sums.Ago)
		}
	}
	scope := eventqueue.Scope{Canvas: first, Module: "M", Name: "h0"}
	of, err := reader.HoursOf(ctx, 7*24*time.Hour, scope)
	if err != nil || len(of.Of[first]) != len(sums.Of[first]) || !of.Until.Equal(sums.Until) || of.Of[first][0].Emitted != 6 || of.Of[first][0].Scope != scope {
		t.Errorf("of a handler there are %+v, %v", of, err)
	}
	if of, err = reader.HoursOf(ctx, 2*time.Hour, scope); err != nil || len(of.Of[first]) > 2 {
		t.Errorf("of two hours of a handler there are %d, %v", len(of.Of[first]), err)
	}
}
