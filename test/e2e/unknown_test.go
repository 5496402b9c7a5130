package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

// TestTwoWorkersWithDifferentHandlers (I13) on one subscription, as in a rolling
// deploy that adds a handler: what the first does not know, the second starts soon.
// The promise is a second for 99 of 100.
func TestTwoWorkersWithDifferentHandlers(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, func(r *rig) {
		const events = 60
		old := r.handlersFile([]string{"known"})
		r.start("worker", nil)
		r.start("worker", map[string]string{"HANDLERS_FILE": old})
		r.emit(event("added", `0`)) // both work when one of these has come to each
		for i := range 20 {
			r.emit(event("known", fmt.Sprint(i)))
		}
		r.target.await(t, 21)
		began := time.Now()
		for i := range events {
			r.emit(event("added", fmt.Sprint(i+1)))
		}
		r.target.await(t, 21+events*95/100)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("95 of 100 events of a handler that one of two workers has started within %s, want 10 s at most", took)
		}
	}, "known", "added")
}
