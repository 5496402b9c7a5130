package e2e_test

import (
	"strings"
	"testing"

	"eventsv2/eventqueue"
)

// TestLargeValuesDelayNoOther (I8, I13, I15): values that only SQL can write, of more than a claim could
// read in its time if there were enough of them. Each reaches its handler as it is.
func TestLargeValuesDelayNoOther(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "large", "small")
	const larges, smalls, bytes = 6, 30, 5 << 20
	events := make([]eventqueue.NewEvent, larges+smalls)
	for i := range events {
		events[i] = event("large", "1")
		if i >= larges {
			events[i] = event("small", "2")
		}
	}
	ids := r.emit(events...)
	for _, id := range ids[:larges] {
		r.awaitSQL("the large value", `WITH written AS (UPDATE events_v2 SET value = '"' || repeat('x', $2) || '"' WHERE id = $1 RETURNING 1) SELECT EXISTS (TABLE written)`, id, bytes)
	}
	r.start("worker", nil)
	r.start("cron", nil)
	want := map[string]string{"large": `"` + strings.Repeat("x", bytes) + `"`, "small": "2"}
	for _, got := range r.target.await(t, larges+smalls) {
		if got.body != want[got.name] {
			t.Errorf("%s %s came with %d bytes, want %d", got.name, got.id, len(got.body), len(want[got.name]))
		}
	}
	r.awaitSQL("the events to be completed", `SELECT NOT EXISTS (TABLE events_v2)`)
	if failed := one[int](r, `SELECT count(*) FROM event_log WHERE status = 'FAILED'`); failed != 0 {
		t.Errorf("%d events failed", failed)
	}
}
