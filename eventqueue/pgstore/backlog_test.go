package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// countPending does a whole round and returns the number of its statements.
func (r *rig) countPending() (pages int) {
	r.t.Helper()
	for after := (eventqueue.Scope{}); ; pages++ {
		waiting, err := r.store.CountWaiting(testenv.Context(r.t), after)
		if err != nil {
			r.t.Fatal(err)
		}
		if after = waiting.Next; after == (eventqueue.Scope{}) {
			return pages + 1
		}
	}
}

// waiting inserts waiting events of one handler, which came a second apart and the last of which is
// so old.
func (r *rig) waiting(name string, events int, age time.Duration) {
	r.t.Helper()
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, enqueued_at, delay_until, notified_at)
		SELECT $1, 'M', $2, '_', '', due, due, due
		FROM (SELECT clock_timestamp() - $4::interval - n * interval '1 second' AS due FROM generate_series($3::int - 1, 0, -1) AS n) AS due`,
		[16]byte(minuteOf(1, name).Canvas), name, events, age)
}

const ageSQL = `SELECT extract(epoch FROM oldest_due)::int FROM event_minutes WHERE name = $1`

// TestCountPendingCountsEachHandler that has events: exactly, with the age of the oldest that is due
// and not running.
func TestCountPendingCountsEachHandler(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("a", 300, time.Hour)
	r.waiting("b", 1, 0)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() WHERE name = 'b'`)
	r.insert(eventqueue.NewEvent{Canvas: minuteOf(1, "c").Canvas, Module: "M", Name: "c", Modifier: "_", Delay: time.Hour})
	if pages := r.countPending(); pages != 1 {
		t.Errorf("three handlers took %d statements", pages)
	}
	for name, want := range map[string]int64{"a": 300, "b": 1, "c": 1} {
		if got := one[int64](r, `SELECT pending FROM event_minutes WHERE name = $1`, name); got != want {
			t.Errorf("%s has %d pending events, not %d", name, got, want)
		}
	}
	if got := one[int](r, ageSQL, "a"); got < 3600+299 || got > 3600+600 {
		t.Errorf("the oldest of a has been due for %d s, not for 3899", got)
	}
	for _, name := range []string{"b", "c"} { // which runs, and which is not due
		if got := one[*int](r, ageSQL, name); got != nil {
			t.Errorf("the oldest of %s has been due for %d s", name, *got)
		}
	}
}

// TestCountPendingFindsTheOldestBehindRunningOnes, and a delayed one whose id is late.
func TestCountPendingFindsTheOldestBehindRunningOnes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("a", 600, time.Minute)
	r.exec(`UPDATE events_v2 SET locked_at = clock_timestamp() WHERE id <= (SELECT min(id) + 499 FROM events_v2)`)
	r.waiting("b", 3, time.Minute)
	r.exec(`UPDATE events_v2 SET enqueued_at = delay_until - interval '2 hours', delay_until = delay_until - interval '1 hour'
		WHERE id = (SELECT max(id) FROM events_v2)`)
	r.countPending()
	if got := one[int](r, ageSQL, "a"); got < 60+99 || got > 400 {
		t.Errorf("the oldest of a that does not run has been due for %d s, not for 159", got)
	}
	if got := one[int](r, ageSQL, "b"); got < 3600 {
		t.Errorf("the oldest of b has been due for %d s, not for 3660", got)
	}
}

// TestAgeOfAlwaysDueEventsIsBounded: it has to fit into a duration of Go.
func TestAgeOfAlwaysDueEventsIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("a", 1, time.Minute)
	r.exec(`UPDATE events_v2 SET delay_until = '0001-01-02 00:00Z'`)
	r.countPending()
	minutes, err := inspect.New(r.pool).Minutes(testenv.Context(t), inspect.Filter{}, time.Hour, inspect.PerMinute)
	if err != nil || len(minutes) != 1 || minutes[0].OldestDue == nil {
		t.Fatalf("Minutes: %+v, %v", minutes, err)
	}
	if got := *minutes[0].OldestDue; got != 36_500*24*time.Hour {
		t.Errorf("the oldest has been due for %s", got)
	}
}

// TestCountPendingReadsABoundedNumberOfEvents, and estimates the rest.
func TestCountPendingReadsABoundedNumberOfEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const events = 3 * pgstore.PendingEvents
	r.waiting("a", events, 0)
	r.exec(`ANALYZE events_v2`)
	r = r.withConns(1)
	r.flush()
	read := func() int {
		return one[int](r, `SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'events_v2'`)
	}
	before := read()
	r.countPending()
	r.flush()
	if rows := read() - before; rows > pgstore.PendingEvents+1000 {
		t.Errorf("it has read %d rows of a backlog of %d", rows, events)
	}
	if got := one[int](r, `SELECT pending FROM event_minutes WHERE name = 'a'`); got < events*9/10 || got > events*11/10 {
		t.Errorf("the estimate is %d of %d events", got, events)
	}
	if got := one[int](r, ageSQL, "a"); got < events-1 {
		t.Errorf("the oldest has been due for %d s, not for %d", got, events)
	}
}

// TestHoursAreTheSumsOfTheirMinutes, each once, and the old ones go.
func TestHoursAreTheSumsOfTheirMinutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := testenv.Context(t)
	r.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, completed, waits, pending, oldest_due)
		SELECT date_trunc('hour', clock_timestamp(), 'UTC') - interval '30 hours' + m * interval '7 minutes', $1, 'M', 'a', 1, '{0,1}', m, m * interval '1 second'
		FROM generate_series(0, 200) AS m`, [16]byte(minuteOf(1, "a").Canvas))
	r.handIn(minutes.Counts{Scope: minuteOf(1, "a"), Completed: 1}) // of this hour, which is not over
	sum := func() (hours int) {
		for {
			summed, err := r.store.SumHour(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !summed {
				return hours
			}
			hours++
		}
	}
	if hours := sum(); hours != 24 { // 200 times 7 minutes
		t.Errorf("%d hours were summed up", hours)
	}
	if again := sum(); again != 0 {
		t.Errorf("%d hours were summed up again", again)
	}
	if got := one[int](r, `SELECT sum(completed)::int FROM event_hours`); got != 201 {
		t.Errorf("the hours have %d of 201 runs", got)
	}
	if got := one[int](r, `SELECT sum(waits[2])::int FROM event_hours`); got != 201 {
		t.Errorf("the hours have %d of 201 waits", got)
	}
	if got := one[int](r, `SELECT pending FROM event_hours ORDER BY hour LIMIT 1`); got != 8 {
		t.Errorf("the highest number of pending events of the first hour is %d", got)
	}
	r.exec(`INSERT INTO webhook_minutes (minute, source, canvas_id, outcome, requests) SELECT now() - h * interval '1 hour', 'shop', $1::uuid, 'accepted', 1 FROM unnest(ARRAY[1, 21]) AS h`, [16]byte{})
	r.exec(`INSERT INTO webhook_sources (source, canvas_id, scheme, served_at) SELECT 'shop' || h, $1::uuid, '', now() - h * interval '1 hour' FROM unnest(ARRAY[1, 26]) AS h`, [16]byte{})
	if deleted, err := r.store.PruneMinutes(ctx, 20*time.Hour, 25*time.Hour, 10_000); err != nil || deleted == 0 {
		t.Fatalf("PruneMinutes: %d, %v", deleted, err)
	}
	if got := one[bool](r, `SELECT bool_and(minute > clock_timestamp() - interval '20 hours 1 minute') FROM event_minutes`); !got {
		t.Error("old minutes are left")
	}
	if got := one[int](r, `SELECT count(*) FROM event_minutes`); got < 100 {
		t.Errorf("%d minutes are left", got)
	}
	if got := one[bool](r, `SELECT bool_and(hour > clock_timestamp() - interval '25 hours 1 minute') FROM event_hours`); !got {
		t.Error("old hours are left")
	}
	if got := one[string](r, `SELECT (SELECT count(*) FROM webhook_minutes) || ' ' || (SELECT string_agg(source, '') FROM webhook_sources)`); got != "1 shop1" {
		t.Errorf("of the counts of webhooks there are %s", got)
	}
}
