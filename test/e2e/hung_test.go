package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestHangingPostgresMakesAProgramUnready: it accepts and never answers, as behind a proxy that hangs.
// A restart would not help, so /healthz stays well, and what the programs count is still to be scraped; /readyz and the
// log name Postgres, and both are well by themselves afterwards. That loops stay well however long it hangs is shown in virtual time, in their own packages (rig.Stalls).
func TestHangingPostgresMakesAProgramUnready(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newRig(t, "greet")
	proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
	behind := map[string]string{"DATABASE_URL": through(t, r.environment["DATABASE_URL"], proxy), "LOG_LEVEL": "info", "OTEL_METRICS_EXPORTER": "prometheus"}
	programs := []*program{r.start("worker", behind), r.start("cron", behind)}
	for _, p := range programs {
		p.await(p.Name + " started")
	}
	alive := func() {
		t.Helper()
		for _, p := range programs {
			if status, text := p.page("/healthz"); status != http.StatusOK {
				t.Errorf("/healthz of %s answers %d %s", p.Name, status, text)
			}
		}
	}

	proxy.Swallow.Store(true)
	for _, p := range programs {
		testenv.Eventually(t, p.Name+" is not ready, because of Postgres", func() bool {
			alive()
			status, text := p.page("/readyz")
			return status == http.StatusServiceUnavailable && strings.HasPrefix(text, "not ready: Postgres cannot be used: see the log")
		})
		p.await(`"message":"not ready","error":"cannot reach the database: check that Postgres runs`)
	}

	for _, p := range programs {
		if status, text := p.page("/metrics"); status != http.StatusOK || !strings.Contains(text, "eventsv2_pool_max") {
			t.Errorf("/metrics of %s answers %d %s", p.Name, status, text)
		}
	}

	proxy.Swallow.Store(false)
	for _, p := range programs {
		testenv.Eventually(t, p.Name+" is ready again", func() bool {
			alive()
			status, text := p.page("/readyz") // the log says what it answers
			return status == http.StatusOK && strings.HasPrefix(text, "ready\n")
		})
		p.await(`"message":"ready"`)
	}
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	for _, p := range programs {
		if status := p.terminate(); status != 0 {
			t.Errorf("%s ended with %d", p.Name, status)
		}
	}
}
