package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"eventsv2/eventqueue"
)

// handle gives the programs a handlers file, in which URL is the target, and has them retain the history.
func (r *rig) handle(file string) (path string) {
	r.t.Helper()
	path = filepath.Join(r.t.TempDir(), "handlers.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(file, "URL", r.target.URL)), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.environment["HANDLERS_FILE"], r.environment["RETAIN_HISTORY"] = path, "true"
	return path
}

// TestTargetTakesBatches: the worker as deployed sends events together, and each ends by what the target says of it.
func TestTargetTakesBatches(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	r.handle(`handlers:
  - {module: WORKER, name: index, modifier: _, url: "URL/index", batch: {size: 20, wait: 1s}, backoff: {base: 100ms, max: 1s}}
`)
	type sent struct {
		ID      string
		Retries int
		Data    int
	}
	var mu sync.Mutex
	ran, requests, most := map[int]int{}, 0, 0
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		var events []sent
		if err := json.NewDecoder(request.Body).Decode(&events); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests, most = requests+1, max(most, len(events))
		outcomes := map[string]map[string]any{}
		for _, e := range events {
			ran[e.Data]++
			switch {
			case e.Data == 7 && e.Retries == 0:
				outcomes[e.ID] = map[string]any{"status": 500, "message": "the shard moves"}
			case e.Data == 8:
				outcomes[e.ID] = map[string]any{"status": 422, "message": "no such page"}
			}
		}
		w.WriteHeader(http.StatusMultiStatus)
		_ = json.NewEncoder(w).Encode(outcomes) // a target that is gone is seen by the worker
	})
	var events []eventqueue.NewEvent
	for n := range 40 {
		events = append(events, event("index", fmt.Sprint(n)))
	}
	r.emit(events...)
	r.start("worker", nil)
	r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
	mu.Lock()
	defer mu.Unlock()
	for n := range 40 {
		want := 1
		if n == 7 {
			want = 2
		}
		if ran[n] != want {
			t.Errorf("event %d was sent %d times, want %d", n, ran[n], want)
		}
	}
	if most < 2 || most > 20 || requests > 40 {
		t.Errorf("%d requests, of %d events at most", requests, most)
	}
	if failed := one[string](r, `SELECT string_agg(value || ' ' || last_error, ', ') FROM event_log WHERE status <> 'COMPLETED'`); failed != "8 POST "+r.target.URL+"/index: 422 Unprocessable Entity: no such page" {
		t.Errorf("failed: %s", failed)
	}
}

// TestOneBadEventOfARequestFailsAlone: the target refuses whole requests for it, and the others of these use no attempt (I15).
func TestOneBadEventOfARequestFailsAlone(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	r.handle(`handlers: [{module: WORKER, name: index, modifier: _, url: "URL/index", batch: {size: 20, wait: 1s}}]`)
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if body, err := io.ReadAll(request.Body); err != nil || strings.Contains(string(body), `"bad"`) {
			http.Error(w, "bad payload", http.StatusBadRequest)
		}
	})
	events := []eventqueue.NewEvent{event("index", `"bad"`)}
	for n := range 15 {
		events = append(events, event("index", fmt.Sprint(n)))
	}
	r.emit(events...)
	r.start("worker", nil)
	r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
	if ends := one[string](r, `SELECT string_agg(l, ', ' ORDER BY l) FROM (SELECT status || ' ' || retries || ' ' || count(*) AS l FROM event_log GROUP BY status, retries) AS ends`); ends != "COMPLETED 0 15, FAILED 0 1" {
		t.Errorf("the events have ended as %s", ends)
	}
	if failed := one[string](r, `SELECT last_error FROM event_log WHERE value = '"bad"'`); failed != "POST "+r.target.URL+"/index: 400 Bad Request: bad payload" {
		t.Errorf("it has failed with %s", failed)
	}
}

// TestTargetAnswersWithResults: the worker as deployed keeps what a target answers, as eventctl and the API show.
func TestTargetAnswersWithResults(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	r.handle(`handlers: [{module: WORKER, name: report, modifier: _, url: "URL/report", answer: result, backoff: {base: 100ms, max: 1s}}]`)
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Ce-Retries") == "0" {
			_, _ = io.WriteString(w, "done") // no JSON
			return
		}
		_, _ = io.WriteString(w, `{"rows": 7, "file": "7.csv"}`)
	})
	id := r.emit(event("report", `1`))[0]
	r.start("worker", nil)
	r.awaitSQL("the event has completed", `SELECT count(*) = 1 FROM event_log WHERE status = 'COMPLETED'`)
	shown := r.eventctlSays("show", id.String())
	for _, want := range []string{"result, 25 bytes", `"rows":7`, "the answer cannot be kept as the result: it is no JSON"} {
		if !strings.Contains(shown, want) {
			t.Errorf("eventctl show lacks %q:\n%s", want, shown)
		}
	}
}
