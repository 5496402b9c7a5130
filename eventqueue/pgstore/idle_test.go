package pgstore_test

import (
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestRunnableEventKeepsItsPlaceUnderALimit: an event that a limit has admitted is idle only while its delay or a rule holds it back,
// as for the claim; an enqueued_at in the future, which only SQL writes, does not.
func TestRunnableEventKeepsItsPlaceUnderALimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`INSERT INTO concurrency_limits (canvas_id, group_key, max_running) VALUES ($1, events_v2_group_key(2, $2, $3, ''), 2)`, canvas, key.Module, key.Name)
	ids := r.insert(event(), event())
	if _, err := r.store.Advance(testenv.Context(t), nil, ids); err != nil {
		t.Fatal(err)
	}
	r.exec(`UPDATE events_v2 SET enqueued_at = clock_timestamp() + interval '1 day' WHERE id = $1`, ids[0])
	r.exec(`UPDATE events_v2 SET delay_until = clock_timestamp() + interval '1 day' WHERE id = $1`, ids[1])
	if _, err := r.store.Sweep(testenv.Context(t), 0, 10, time.Minute); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{2, 3} {
		if state := one[int](r, `SELECT group_state FROM events_v2 WHERE id = $1`, ids[i]); state != want {
			t.Errorf("event %d has the group_state %d, want %d", i, state, want)
		}
	}
}
