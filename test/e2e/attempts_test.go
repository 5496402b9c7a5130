package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"eventsv2/test/testenv"
)

// TestFailedAttemptsAreShown has an operator see each run that failed, with its worker, and who
// holds the event now.
func TestFailedAttemptsAreShown(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testWhyAnEventRetries, "greet")
}

func (r *rig) testWhyAnEventRetries() {
	t := r.t
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	var runs atomic.Int32
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		switch runs.Add(1) {
		case 1:
			http.Error(w, "the ledger is closed", http.StatusInternalServerError)
		case 2:
			http.Error(w, "the ledger is full", http.StatusBadGateway)
		default:
			select {
			case <-ended:
			case <-request.Context().Done():
			}
		}
	})
	holder := r.start("worker", map[string]string{"LOCK_TIMEOUT": "10h"})
	holder.await("worker started")
	id := r.emit(event("greet", `1`))[0].String()
	r.target.await(t, 3)

	says := func(what string, wants []string, args ...string) {
		t.Helper()
		var out string
		testenv.Eventually(t, what, func() bool {
			out = r.eventctlSays(args...)
			for _, want := range wants {
				if !strings.Contains(out, want) {
					return false
				}
			}
			return true
		})
		t.Logf("%s:\n%s", what, out)
	}
	says("each failed attempt is shown", []string{"500 Internal Server Error: the ledger is closed", "502 Bad Gateway: the ledger is full", host}, "show", id)
	says("the holder is shown", []string{"held by", host, "live"}, "show", id)
	says("the last error is listed", []string{"LAST ERROR", "the ledger is full"}, "list")
	says("the worker is live", []string{host, "live"}, "worker", "list")

	holder.Kill()
	holder.wait()
	says("a killed worker is dead", []string{host, "dead"}, "worker", "list")
	says("the holder is dead", []string{"held by", "which is dead", "no longer runs"}, "show", id)

	for recorded := false; !recorded; {
		next := r.start("worker", map[string]string{"LOCK_TIMEOUT": "10h"})
		next.await("worker started")
		says("two workers of one host are two", []string{"dead", "live"}, "worker", "list")
		if status := next.terminate(); status != 0 {
			t.Errorf("the worker ended with status %d", status)
		}
		recorded = !strings.Contains(next.text(), "could not record that the worker has stopped") // it does not wait for a busy database
	}
	says("a stopped worker is stopped", []string{"dead", "stopped"}, "worker", "list")
}
