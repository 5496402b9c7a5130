package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// queriesOfDashboards are all that the files in deploy/dashboards ask Prometheus for.
func queriesOfDashboards(t *testing.T) (queries map[string]bool) {
	t.Helper()
	queries = map[string]bool{}
	for _, name := range []string{"grafana.json", "cloud-monitoring.json"} {
		text, err := os.ReadFile("../../deploy/dashboards/" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`"(?:expr|prometheusQuery)": ("(?:[^"\\]|\\.)*")`).FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Fatalf("%s asks for nothing", name)
		}
		for _, match := range found {
			var query string
			if err := json.Unmarshal(match[1], &query); err != nil {
				t.Fatal(err)
			}
			queries[query] = true
		}
	}
	return queries
}

// TestEachDashboardQueryReturnsData, from a real Prometheus that scrapes a worker and a cron as they are deployed, to
// which everything happens that is counted.
func TestEachDashboardQueryReturnsData(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, time.Minute) // what is pending is counted once in it
	r, proxy := behindProxy(t)
	var requests atomic.Int32
	var released sync.Once
	hold, let := make(chan struct{}), make(chan struct{})
	release := func() { released.Do(func() { close(let) }) }
	t.Cleanup(release)
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		switch requests.Add(1) {
		case 1:
			close(hold)
			<-let
		case 2: // the run of whoever has taken it over
			http.Error(w, "not now", http.StatusServiceUnavailable)
		}
	})
	handlers, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "handlers.yaml")
	text := string(handlers) + "webhooks:\n  - {source: github, scheme: github, secrets: [SECRET], module: WORKER, modifier: _, names: {push: greet}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	exported := map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "HANDLERS_FILE": file, "SECRET": "hush", "LOCK_TIMEOUT": "3s",
		"RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "1s", "API_LISTEN": "127.0.0.1:0"}
	worker, cron := r.start("worker", exported), r.start("cron", exported)
	worker.await("worker started")
	cron.await("cron started")
	hasData := r.prometheus("", worker, cron).hasData

	r.emit(event("greet", `1`))
	<-hold // it runs, and its lock is renewed until another one takes the event
	testenv.Eventually(t, "its lock was renewed", func() bool { return hasData("eventsv2_locks_renewal_age_seconds_count > 0") })
	if _, err := r.pool.Exec(testenv.Context(t), `UPDATE events_v2 SET attempts = attempts + 1, claim_id = claim_id + 1, locked_at = clock_timestamp() - interval '1 minute'`); err != nil {
		t.Fatal(err)
	}
	release()
	testenv.Eventually(t, "its lock is lost, and taken over", func() bool {
		return hasData("eventsv2_locks_lost_total > 0") && hasData("eventsv2_events_taken_over_total > 0")
	})

	r.awaitSQL("it has completed", `SELECT count(*) = 0 FROM events_v2`)

	post := func(address, body string) {
		t.Helper()
		answer, err := http.Post(address, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	post(worker.address()+"/webhooks/"+canvas.String()+"/github", `{}`) // it is not signed
	r.eventctl("pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet")
	r.emit(event("greet", `2`))
	testenv.Eventually(t, "the notification of a paused event is dropped", func() bool { return hasData(`eventsv2_notifications_dropped_total > 0`) })
	r.emit(event("nobody", `3`)) // which no worker has: it is given back
	testenv.Eventually(t, "it is", func() bool { return hasData(`eventsv2_notifications_requeued_total > 0`) })
	proxy.Refuse.Store(true)
	proxy.Break() // nobody can publish
	post(worker.site(t)+"/v1/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":4}`, canvas))

	missing := queriesOfDashboards(t)
	testenv.Eventually(t, "each query has data", func() bool {
		for query := range missing {
			if hasData(query) {
				delete(missing, query)
			}
		}
		if len(missing) > 0 {
			t.Logf("no data yet: %v", slices.Collect(maps.Keys(missing)))
		}
		return len(missing) == 0
	})
}
