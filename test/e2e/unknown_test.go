package e2e_test

import (
	"fmt"
	"testing"
)

// TestWorkersMayHaveDifferentHandlers (I13) on one subscription, as in a rolling
// deploy that adds a handler: what the first does not know, the second starts, and no
// relay runs that would help. How soon is tested in virtual time, where no load of
// this machine counts.
func TestWorkersMayHaveDifferentHandlers(t *testing.T) {
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
		r.target.await(r.t, 21)
		for i := range events {
			r.emit(event("added", fmt.Sprint(i+1)))
		}
		r.target.await(r.t, 21+events)
	}, "known", "added")
}
