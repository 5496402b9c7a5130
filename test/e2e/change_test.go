package e2e_test

import (
	"strings"
	"testing"
)

// operating runs eventctl, and requires its exit status and a text among its errors.
func (r *rig) operating(status int, want string, args ...string) {
	r.t.Helper()
	p := r.start("eventctl", nil, args...)
	if got := p.wait(); got != status || !strings.Contains(p.text(), want) {
		r.t.Errorf("eventctl %s: exit status %d, want %d; stderr %q, want %q", strings.Join(args, " "), got, status, p.text(), want)
	}
}

// TestWaitingEventsAreChanged: what was cancelled or deleted does not run, an event that runs is refused
// and completes with the value that it began with, and what was edited, or cancelled and retried with
// another value, runs with that.
func TestWaitingEventsAreChanged(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet", "slow")
	ended := make(chan struct{})
	r.target.holdUntil(ended)
	r.start("worker", nil).await("worker started")
	runs := r.emit(event("greet", `"runs"`))[0]
	r.target.await(t, 1)
	r.operating(0, "", "pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "slow")
	ids := r.emit(event("slow", `"cancelled"`), event("slow", `"deleted"`), event("slow", `"stays"`))

	r.operating(0, "", "cancel", ids[0].String())
	r.operating(0, "", "cancel", ids[0].String()) // twice is as once
	r.operating(0, `"Cancelled"`, "explain", ids[0].String(), "--json")
	r.operating(0, ", before any worker had claimed it.", "explain", ids[0].String())
	r.operating(3, "is running: a worker holds its lock", "delete", runs.String())
	r.operating(0, "", "delete", ids[1].String())
	r.operating(3, "is neither in the queue nor in event_log", "delete", ids[1].String())
	if !one[bool](r, `SELECT array_agg(id) = ARRAY[$1::bigint] AND bool_and(status::text = 'CANCELLED' AND value = '"cancelled"') FROM event_log`, ids[0]) {
		t.Error("event_log has other events than the one that was cancelled")
	}

	r.operating(0, "", "edit", "--name", "slow", "--state", "paused", "--value", `"edited"`, "--yes")
	r.operating(3, "is running: a worker holds its lock", "edit", runs.String(), "--value", `"edited"`)

	r.target.answerWith(nil)
	close(ended)
	r.operating(0, "", "unpause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "slow")
	r.awaitSQL("all others have ended", `SELECT count(*) = 0 FROM events_v2`)
	r.operating(0, "", "retry", "--name", "slow", "--status", "cancelled", "--value", `"again"`, "--yes")
	requests := r.target.await(t, 3)
	r.awaitSQL("the cancelled event has ended", `SELECT (SELECT count(*) FROM events_v2) + (SELECT count(*) FROM event_log) = 0`)
	for i, want := range []string{`"runs"`, `"edited"`, `"again"`} {
		if got := requests[i].body; got != want {
			t.Errorf("request %d has the value %s, want %s", i+1, got, want)
		}
	}
}
