package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
	"eventsv2/test/testenv"
)

// handIn adds counts to the current minute.
func (r *rig) handIn(counts ...minutes.Counts) {
	r.t.Helper()
	if _, err := r.store.AddMinutes(testenv.Context(r.t), counts); err != nil {
		r.t.Fatal(err)
	}
}

// minuteOf is a scope on the n-th canvas.
func minuteOf(n int, name string) eventqueue.Scope {
	return eventqueue.Scope{Canvas: eventqueue.CanvasID{0: 1, 14: byte(n >> 8), 15: byte(n)}, Module: "M", Name: name}
}

// TestCountsOfTwoWorkersAdd, to the minute of the database's clock, histograms included.
func TestCountsOfTwoWorkersAdd(t *testing.T) {
	t.Parallel()
	r := newRigWithClock(t, -7*time.Hour)
	counts := func(waits, runs minutes.Histogram) minutes.Counts {
		return minutes.Counts{Scope: minuteOf(1, "a"), Emitted: 1, Completed: 2, Failed: 3, Retried: 4, Wait: waits, Run: runs}
	}
	before := r.now()
	r.handIn(counts(minutes.Histogram{1, 2}, nil))
	now, err := r.store.AddMinutes(testenv.Context(t), []minutes.Counts{counts(minutes.Histogram{1, 0, 5}, minutes.Histogram{7})})
	if err != nil || now.Before(before) || now.After(r.now()) {
		t.Fatalf("AddMinutes: %s, %v", now, err)
	}
	type sums struct{ emitted, completed, failed, retried int64 }
	got := sums{one[int64](r, `SELECT sum(emitted)::bigint FROM event_minutes`), one[int64](r, `SELECT sum(completed)::bigint FROM event_minutes`),
		one[int64](r, `SELECT sum(failed)::bigint FROM event_minutes`), one[int64](r, `SELECT sum(retried)::bigint FROM event_minutes`)}
	if got != (sums{2, 4, 6, 8}) {
		t.Errorf("the sums are %+v", got)
	}
	if minute := one[time.Time](r, `SELECT min(minute) FROM event_minutes`); minute.Before(before.Truncate(time.Minute)) || minute.After(r.now()) {
		t.Errorf("the minute is %s; the database's clock was %s", minute, before)
	}
	if one[int](r, `SELECT count(*) FROM event_minutes`) == 1 { // else a minute has begun between the two
		if waits := one[[]int64](r, `SELECT waits FROM event_minutes`); len(waits) != 3 || waits[0] != 2 || waits[1] != 2 || waits[2] != 5 {
			t.Errorf("the waits are %v", waits)
		}
		if runs := one[[]int64](r, `SELECT runs FROM event_minutes`); len(runs) != 1 || runs[0] != 7 {
			t.Errorf("the runs are %v", runs)
		}
	}
}

// TestMinuteHasABoundedNumberOfRows, and loses no count by that: of 10,000 canvases some have rows
// of their own, and the others are counted by handler.
func TestMinuteHasABoundedNumberOfRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const canvases, page = 10_000, 2000
	for first := 0; first < canvases; first += page {
		var counts []minutes.Counts
		for n := first; n < first+page; n++ {
			counts = append(counts, minutes.Counts{Scope: minuteOf(n, "a"), Completed: 1, Wait: minutes.Histogram{0, 1}, Run: minutes.Histogram{1}})
		}
		r.handIn(counts...)
	}
	if got := one[int](r, `SELECT sum(completed)::int FROM event_minutes`); got != canvases {
		t.Errorf("the sum is %d of %d", got, canvases)
	}
	if got := one[int](r, `SELECT sum(waits[2] + runs[1])::int FROM event_minutes`); got != 2*canvases {
		t.Errorf("the histograms have %d of %d durations", got, 2*canvases)
	}
	if rows := one[int](r, `SELECT max(n) FROM (SELECT count(*) AS n FROM event_minutes GROUP BY minute) AS m`); rows != 1001 {
		t.Errorf("a minute has %d rows, not one for each of 1,000 canvases and one for all others", rows)
	}
}

// TestFurtherHandlersAreCountedTogether when there are too many of them as well.
func TestFurtherHandlersAreCountedTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	name := func(n int) string { return string([]rune{'a' + rune(n/676), 'a' + rune(n/26%26), 'a' + rune(n%26)}) }
	for range 2 { // the second hand-in finds the rows of the first
		var counts []minutes.Counts
		for n := range 2500 {
			counts = append(counts, minutes.Counts{Scope: minuteOf(n, name(n)), Emitted: 1})
		}
		r.handIn(counts...)
	}
	if got := one[int](r, `SELECT sum(emitted)::int FROM event_minutes`); got != 5000 {
		t.Errorf("the sum is %d of 5000", got)
	}
	if rows := one[int](r, `SELECT max(n) FROM (SELECT count(*) AS n FROM event_minutes GROUP BY minute) AS m`); rows != 2001 {
		t.Errorf("a minute has %d rows, not 1,000 of canvases, 1,000 of handlers and one for all others", rows)
	}
}
