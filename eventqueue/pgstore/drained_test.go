package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// minutesPass has every count be so many minutes older.
func (r *rig) minutesPass(n int) {
	r.t.Helper()
	r.exec(`UPDATE event_minutes SET minute = minute - $1::int * interval '1 minute' - interval '10000000 hours'`, n)
	r.exec(`UPDATE event_minutes SET minute = minute + interval '10000000 hours'`)
}

// lastPending is the newest count of each handler, and how many rows it has.
func (r *rig) lastPending() map[string]string {
	r.t.Helper()
	names := one[[]string](r, `SELECT coalesce(array_agg(DISTINCT name ORDER BY name), '{}') FROM event_minutes`)
	last := map[string]string{}
	for _, name := range names {
		last[name] = one[string](r, `SELECT concat_ws(' of ', coalesce((array_agg(pending ORDER BY minute DESC))[1]::text, 'none'), count(*)) FROM event_minutes WHERE name = $1`, name)
	}
	return last
}

func (r *rig) pendingIs(when string, want map[string]string) {
	r.t.Helper()
	if got := r.lastPending(); fmt.Sprint(got) != fmt.Sprint(want) {
		r.t.Errorf("%s: the newest counts, each of so many rows, are %v, want %v", when, got, want)
	}
}

// TestHandlerWithoutEventsIsCountedAsZero when the last one has ended, once; in a queue in which nothing happens nothing is written.
func TestHandlerWithoutEventsIsCountedAsZero(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waiting("ended", 3, time.Hour)
	r.waiting("waits", 2, time.Hour)
	r.countPending()
	r.minutesPass(1)
	r.exec(`DELETE FROM events_v2 WHERE name = 'ended'`)
	r.countPending()
	r.pendingIs("when the events of one have ended", map[string]string{"ended": "0 of 2", "waits": "2 of 2"})
	if due := one[bool](r, `SELECT bool_or(oldest_due IS NOT NULL) FROM event_minutes WHERE name = 'ended' AND pending = 0`); due {
		t.Error("of a handler without events one has been due")
	}
	r.minutesPass(1)
	r.exec(`DELETE FROM events_v2`)
	r.countPending()
	for range 3 {
		r.minutesPass(1)
		r.countPending()
	}
	r.pendingIs("when nothing has happened since", map[string]string{"ended": "0 of 2", "waits": "0 of 3"})
}

// TestHandlerWithShortEventsIsCountedAsZero: what is emitted and ends between two counts is never pending when the relay counts.
func TestHandlerWithShortEventsIsCountedAsZero(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ran := func() { r.handIn(minutes.Counts{Scope: minuteOf(1, "short"), Emitted: 5, Completed: 5}) }
	ran()
	r.minutesPass(1)
	r.countPending()
	r.pendingIs("after its first runs", map[string]string{"short": "0 of 2"})
	ran() // in this minute, or in the next
	r.minutesPass(2)
	r.countPending()
	rows := one[int](r, `SELECT count(*) FROM event_minutes`)
	r.minutesPass(1)
	r.countPending()
	r.pendingIs("when it has run no more", map[string]string{"short": fmt.Sprintf("0 of %d", rows)})
}

// TestZeroIsWrittenOfThePageOnly, up to the last scope of it; what a handler of another canvas has is not touched.
func TestZeroIsWrittenOfThePageOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// The first page ends with n1000, behind which and before which there are handlers without events.
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
		SELECT $1, 'M', 'n' || to_char(n, 'FM0000'), '_', '', now() FROM generate_series(1, $2::int + 2) AS n`, [16]byte(minuteOf(1, "").Canvas), pgstore.PendingScopes)
	r.exec(`INSERT INTO event_minutes (minute, canvas_id, module, name, pending)
		SELECT date_trunc('minute', clock_timestamp(), 'UTC') - interval '1 minute', c, 'M', n, 7
		FROM unnest($1::uuid[], ARRAY['n0500-ended', 'n1000-ended', 'z-ended', 'elsewhere']) AS ended (c, n)`,
		[][16]byte{minuteOf(1, "").Canvas, minuteOf(1, "").Canvas, minuteOf(1, "").Canvas, minuteOf(2, "").Canvas})
	zeros := func() string {
		return one[string](r, `SELECT coalesce(string_agg(name, ' ' ORDER BY canvas_id, name), '') FROM event_minutes WHERE pending = 0`)
	}
	waiting, err := r.store.CountWaiting(testenv.Context(t), eventqueue.Scope{})
	if err != nil || waiting.Next != minuteOf(1, fmt.Sprintf("n%04d", pgstore.PendingScopes)) {
		t.Fatalf("CountWaiting: up to %+v, %v", waiting.Next, err)
	}
	if got := zeros(); got != "n0500-ended" {
		t.Errorf("the first page has written 0 of %q", got)
	}
	if _, err := r.store.CountWaiting(testenv.Context(t), waiting.Next); err != nil {
		t.Fatal(err)
	}
	if got := zeros(); got != "n0500-ended n1000-ended z-ended elsewhere" {
		t.Errorf("both pages have written 0 of %q", got)
	}
}

// TestOthersAreNotCountedAsPending: rows of many canvases together have no count of what is pending.
func TestOthersAreNotCountedAsPending(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.handIn(minutes.Counts{Scope: eventqueue.Scope{Module: "M", Name: "others"}, Completed: 5}, minutes.Counts{Completed: 7})
	r.minutesPass(1)
	r.countPending()
	if n := one[int](r, `SELECT count(*) FROM event_minutes WHERE pending IS NOT NULL`); n != 0 {
		t.Errorf("%d rows of others have a count", n)
	}
}
