package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"testing"
)

// TestEndlessSnoozesEnd (I9): neither Retry-After: 0 nor a Retry-After again
// and again keeps an event from ending.
func TestEndlessSnoozesEnd(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "at-once", "later")
	file, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	file = bytes.ReplaceAll(file, []byte("max: 1s}"), []byte("max: 1s}, max_retries: 1, max_snoozes: 2, min_snooze: 10ms"))
	if err := os.WriteFile(r.environment["HANDLERS_FILE"], file, 0o600); err != nil {
		t.Fatal(err)
	}
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Retry-After", "0")
		if request.URL.Path == "/later" {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	r.start("worker", nil)
	atOnce, later := r.emit(event("at-once", `1`))[0], r.emit(event("later", `1`))[0]
	for _, c := range []struct {
		what     string
		id       any
		attempts int
	}{
		{"Retry-After: 0 again and again", atOnce, 2},
		{"Retry-After: 1 again and again", later, 6},
	} {
		r.awaitSQL(c.what+" ends", `SELECT EXISTS (SELECT FROM event_log WHERE id = $1)`, c.id)
		if got := one[int](r, `SELECT attempts FROM event_log WHERE id = $1 AND status = 'FAILED'`, c.id); got != c.attempts {
			t.Errorf("%s: FAILED after %d runs, want %d", c.what, got, c.attempts)
		}
	}
}
