package e2e_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/testenv"
)

// TestEventsStartAlthoughTheRelayLosesAnAnswer (I19): the statement with which it takes their pending
// notifications commits, and its answer is cut off, or never comes.
func TestEventsStartAlthoughTheRelayLosesAnAnswer(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	for how, silent := range map[string]bool{"cut off": false, "silent": true} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "greet")
			proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
			cron := r.start("cron", map[string]string{"DATABASE_URL": through(t, r.environment["DATABASE_URL"], proxy),
				"RELAY_LOST_AFTER": "1h"}) // and not by what finds lost notifications
			cron.await("cron started")
			lost := proxy.Lose("UPDATE 3", silent)
			err := pgx.BeginFunc(testenv.Context(t), r.pool, func(tx pgx.Tx) error {
				_, err := r.queue.EmitTx(testenv.Context(t), tx, event("greet", `1`), event("greet", `2`), event("greet", `3`))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-lost:
			case <-testenv.Context(t).Done():
				t.Fatal("the relay has not taken three events at once")
			}
			r.start("worker", nil) // which would have looked for the events itself
			r.target.await(t, 3)
		})
	}
}
