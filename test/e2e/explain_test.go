package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// explain runs eventctl explain to its end, and waits until it says a text.
func (r *rig) explain(id int64, want ...string) {
	r.t.Helper()
	var text string
	said := func() bool {
		text = r.eventctlSays("explain", fmt.Sprint(id)) // a missing event has a status of its own
		for _, w := range want {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	}
	defer func() {
		if r.t.Failed() {
			r.t.Logf("eventctl explain %d says\n%swant %q", id, text, want)
		}
	}()
	testenv.Eventually(r.t, "eventctl explain says so", said)
}

// TestEventIsExplained follows one event through what can keep it, as the person does who asks why.
func TestEventIsExplained(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	id := int64(r.emit(event("greet", `1`))[0])
	r.explain(id, "No worker runs.", "Start a worker with its handler WORKER/greet/_.")

	r.eventctl("pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	worker := r.start("worker", map[string]string{"WORKER_GRACE_PERIOD": "0s"})
	worker.await("worker started")
	r.explain(id, "Its handler is paused by the user", "eventctl unpause --canvas "+canvas.String())

	let := make(chan struct{})
	t.Cleanup(func() { close(let) })
	r.target.holdUntil(let)
	r.eventctl("unpause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	r.target.await(t, 1)
	r.explain(id, "runs it now: it holds the lock", "live)")

	other := event("other", `1`)
	unknown := int64(r.emit(other)[0])
	r.explain(unknown, "No live worker, of which there are 1, has its handler WORKER/other/_", "deploy a version")
	far := event("greet", `2`)
	far.Delay = time.Hour
	r.explain(int64(r.emit(far)[0]), "It is due", "eventctl requeue")

	worker.terminate()
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of paper", http.StatusServiceUnavailable)
	})
	// The next try is an hour away, so that it has not come before explain is asked.
	later := r.handlersFileWith("{base: 1h, max: 1h}", []string{"greet"})
	r.start("worker", map[string]string{"HANDLERS_FILE": later}).await("worker started")
	r.explain(id, "Its last run failed", "it is tried again")
	r.explain(id+1000, "neither in the queue nor in the history")
}

// TestEventOfAKilledWorkerIsExplained: nobody runs it, and what would keep it once its lock has expired is said, too.
func TestEventOfAKilledWorkerIsExplained(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	let := make(chan struct{})
	t.Cleanup(func() { close(let) })
	r.target.holdUntil(let)
	worker := r.start("worker", map[string]string{"LOCK_TIMEOUT": "1h", "WORKER_HEARTBEAT": "1s"})
	worker.await("worker started")
	id := int64(r.emit(event("greet", `1`))[0])
	r.target.await(t, 1)
	r.explain(id, "runs it now: it holds the lock", "live)")

	worker.Kill()
	gone := []string{"dead), which took or renewed the lock", "no longer runs, or has lost the database; its lock is valid until", "another worker takes the event over"}
	r.explain(id, append(gone, "no relay runs that would notify it again: start cmd/cron", "No worker runs; the last that had it was on", "Start a worker with its handler WORKER/greet/_.")...)
	r.eventctl("pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	r.start("cron", nil).await("cron started")
	r.explain(id, append(gone, "the relay notifies it again", "Its handler is paused by the user")...)
}
