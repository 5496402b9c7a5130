package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/testenv"
)

// promisedHearing is within what time work goes on when a listener has gone silent.
const promisedHearing = 20 * time.Second

const deafness = "ready, but wake-ups over Postgres do not arrive, and events are found by polling"

// TestSilentListenersAreReplaced (I13, I19): the sessions that listen end, and whatever is in between keeps
// the connections open, so that nothing arrives on them and nothing fails. Events run, the log and readiness
// say why they are found by polling, and a new connection is used when there is one.
func TestSilentListenersAreReplaced(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, func(r *rig) {
		testenv.Promised(r.t, promisedHearing)
		proxy := testenv.Proxy(r.t, hostOf(r.t, r.environment["DATABASE_URL"]))
		behind := map[string]string{"DATABASE_URL": through(r.t, r.environment["DATABASE_URL"], proxy), "LOG_LEVEL": "info"}
		programs := []*program{r.start("worker", behind), r.start("cron", behind)}
		for _, p := range programs {
			p.await(p.Name + " started")
		}
		r.emit(event("greet", `1`))
		r.target.await(r.t, 1)
		r.awaitSigns()

		testenv.Eventually(r.t, "there are listeners", func() bool { return proxy.Abandon("LISTEN") > 0 })
		r.emit(event("greet", `2`))
		r.target.await(r.t, 2)
		for _, p := range programs {
			p.await("the connection that listens is silent")
			testenv.Eventually(r.t, p.Name+" says that it does not hear", func() bool {
				status, text := p.page("/readyz")
				return status == http.StatusOK && strings.HasPrefix(text, deafness)
			})
			p.await(deafness)
		}

		proxy.Restore()
		for _, p := range programs {
			testenv.Eventually(r.t, p.Name+" hears again", func() bool {
				status, text := p.page("/readyz")
				return status == http.StatusOK && strings.HasPrefix(text, "ready\n")
			})
		}
		r.emit(event("greet", `3`))
		r.target.await(r.t, 3)
		for _, p := range programs {
			if status := p.terminate(); status != 0 {
				r.t.Errorf("%s ended with %d", p.Name, status)
			}
		}
	}, "greet")
}

// awaitSigns waits until the relay has twice shown that it lives: then all that listen have heard it.
func (r *rig) awaitSigns() {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	conn, err := pgx.Connect(ctx, r.environment["DATABASE_URL"])
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }() // nothing depends on it
	if _, err := conn.Exec(ctx, `LISTEN events_v2_alive`); err != nil {
		r.t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.WaitForNotification(testenv.Context(r.t)); err != nil {
			r.t.Fatal(err)
		}
	}
}
