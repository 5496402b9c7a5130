package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

var apiAddress = regexp.MustCompile(`the HTTP API listens[^\n]*"address":"([^"]+)"`)

// site is where a program serves the HTTP API and the dashboard.
func (p *program) site(t *testing.T) string {
	t.Helper()
	p.await("the HTTP API listens")
	found := apiAddress.FindStringSubmatch(p.text())
	if found == nil {
		t.Fatal("the log names no address")
	}
	return "http://" + found[1]
}

// asked makes a request, with the token if there is one.
func asked(t *testing.T, token, method, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(testenv.Context(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestHangingPostgresIsNamedToClients: while it accepts and never answers, requests of the API and pages of the
// dashboard are answered with what is wrong, and afterwards as before.
func TestHangingPostgresIsNamedToClients(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newPostgresRig(t, "greet")
	token := strings.TrimSpace(r.eventctlSays("token", "create", "--name", "night", "--verbs", "read,emit,operate"))
	proxy := testenv.Proxy(t, hostOf(t, r.environment["DATABASE_URL"]))
	cron := r.start("cron", map[string]string{"DATABASE_URL": through(t, r.environment["DATABASE_URL"], proxy), "API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true"})
	site := cron.site(t)
	list := site + "/v1/events?canvas_id=" + canvas.String()
	wants := func(status int, text, method, url, body string) {
		t.Helper()
		if got, answer := asked(t, token, method, url, body); got != status || !strings.Contains(answer, text) {
			t.Errorf("%s %s: %d %s, want %d with %q", method, url, got, answer, status, text)
		}
	}
	works := func() {
		t.Helper()
		wants(http.StatusOK, `"items"`, "GET", list, "")
		wants(http.StatusOK, "<h1>Overview</h1>", "GET", site+"/", "")
	}
	works()
	proxy.Swallow.Store(true)
	wants(http.StatusServiceUnavailable, "the database does not answer", "GET", list, "")
	wants(http.StatusServiceUnavailable, "the database does not answer", "POST", site+"/v1/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":1}`, canvas))
	wants(http.StatusServiceUnavailable, "The database does not answer", "GET", site+"/", "")
	wants(http.StatusServiceUnavailable, "The database does not answer", "GET", site+"/events", "")
	proxy.Swallow.Store(false)
	testenv.Eventually(t, "the API answers again", func() bool {
		status, _ := asked(t, token, "GET", list, "")
		return status == http.StatusOK
	})
	works()
	if status := cron.terminate(); status != 0 {
		t.Errorf("cron ended with status %d", status)
	}
}

// TestBulkOperationSurvivesAKilledProgram: another program takes it up where the killed one was, and each event is
// retried once.
func TestBulkOperationSurvivesAKilledProgram(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	const failed = 3000
	if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, last_error, enqueued_at)
		SELECT nextval('events_id_seq'), $1, 'WORKER', 'nobody', '_', '{}', 'FAILED', 3, 4, 'the ledger is closed', now() FROM generate_series(1, $2::int)`, [16]byte(canvas), failed); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(r.eventctlSays("token", "create", "--name", "night", "--verbs", "read,operate"))
	serving := map[string]string{"API_LISTEN": "127.0.0.1:0"}
	first := r.start("cron", serving)
	at := first.site(t) + "/v1/bulk"
	status, answer := asked(t, token, "POST", at, fmt.Sprintf(`{"verb":"retry","filter":{"canvas_id":%q,"error":"ledger"}}`, canvas))
	var operation struct {
		ID      string
		Counted int
	}
	if err := json.Unmarshal([]byte(answer), &operation); err != nil || status != http.StatusCreated || operation.Counted != failed {
		t.Fatalf("%d %s, %v", status, answer, err)
	}
	// One of the events is locked, so that the operation stops in the middle.
	ctx := testenv.Context(t)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM event_log WHERE id = (SELECT id FROM event_log ORDER BY id OFFSET $1 LIMIT 1) FOR UPDATE`, failed/2); err != nil {
		t.Fatal(err)
	}
	if status, answer := asked(t, token, "POST", at+"/"+operation.ID+"/confirm", ""); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	r.awaitSQL("a part of them is retried", `SELECT count(*) BETWEEN 1 AND $1 FROM events_v2`, failed-1)
	first.Kill()
	first.wait()
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	// The lease of the killed one ends, as it would by itself half a minute later.
	if _, err := r.pool.Exec(ctx, `UPDATE bulk_operations SET leased_until = clock_timestamp()`); err != nil {
		t.Fatal(err)
	}
	second := r.start("cron", serving)
	at = second.site(t) + "/v1/bulk/" + operation.ID
	testenv.Eventually(t, "it is done", func() bool {
		_, answer := asked(t, token, "GET", at, "")
		return strings.Contains(answer, fmt.Sprintf(`"state":"done","counted":%d,"changed":%d,`, failed, failed))
	})
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n != failed {
		t.Errorf("%d of %d events are in the queue", n, failed)
	}
	if n := one[int](r, `SELECT count(*) - count(DISTINCT event) FROM audit_log a CROSS JOIN jsonb_array_elements(a.target -> 'events') AS event WHERE a.action = 'retry'`); n != 0 {
		t.Errorf("%d events were retried again", n)
	}
	if status := second.terminate(); status != 0 {
		t.Errorf("cron ended with status %d", status)
	}
}
