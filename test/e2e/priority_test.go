package e2e_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"eventsv2/eventqueue"
)

// TestPriorityBesideABacklog: while every slot of the deployed worker is held by an event of a backlog, with
// many behind them, one of high priority starts, and so does one of low priority, in the end. All are done once.
func TestPriorityBesideABacklog(t *testing.T) {
	t.Parallel()
	for notifier, newRig := range map[string]func(*testing.T, ...string) *rig{"pubsub": newRig, "postgres": newPostgresRig} {
		t.Run(notifier, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "work")
			const backlog = 200
			began, release := make(chan string, backlog+2), make(chan struct{})
			r.target.answerWith(func(_ http.ResponseWriter, request *http.Request) {
				var value string
				if err := json.NewDecoder(request.Body).Decode(&value); err != nil {
					t.Error(err)
				}
				if value == "normal" {
					select {
					case <-release:
					case <-request.Context().Done():
					}
				}
				began <- value
			})
			var events []eventqueue.NewEvent
			for range backlog {
				events = append(events, event("work", `"normal"`))
			}
			r.emit(events...)
			r.start("cron", nil).await("cron started")
			r.start("worker", map[string]string{"WORKER_CONCURRENCY": "32"})
			r.awaitSQL("the slots are taken", `SELECT count(*) >= 30 FROM events_v2 WHERE locked_at IS NOT NULL`)
			for _, priority := range []string{"high", "low"} {
				r.eventctl("emit", "--canvas", canvas.String(), "--module", "WORKER", "--name", "work", "--value", `"`+priority+`"`, "--priority", priority)
				if first := <-began; first != priority {
					t.Errorf("an event of %s priority begins before that of %s priority", first, priority)
				}
			}
			close(release)
			r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
			for range backlog {
				if value := <-began; value != "normal" {
					t.Errorf("an event of %s priority ran twice", value)
				}
			}
		})
	}
}
