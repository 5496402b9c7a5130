package e2e_test

import (
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestCancelEndsTheRequestOfAnEventThatRuns: its target hangs, and its worker ends the request within five seconds, though no heartbeat is due.
func TestCancelEndsTheRequestOfAnEventThatRuns(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, 5*time.Second)
	r := newPostgresRig(t, "slow")
	let := make(chan struct{})
	defer close(let)
	r.target.holdUntil(let)
	r.start("worker", nil).await("worker started")
	id := r.emit(event("slow", `"runs"`))[0]
	r.target.await(t, 1)
	r.operating(0, "its worker was asked to end the run; see eventctl explain "+id.String(), "cancel", id.String(), "--actor", "ada", "--reason", "emitted twice")
	r.awaitSQL("the event was cancelled", `SELECT EXISTS (SELECT FROM event_log WHERE status = 'CANCELLED' AND reason = 'emitted twice' AND actor = 'ada')`)
	r.operating(0, "by ada, after 1 claim: emitted twice.", "explain", id.String())
}
