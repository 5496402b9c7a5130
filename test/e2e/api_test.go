package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"eventsv2/test/testenv"
)

// TestAPI works with the API that a deployed worker serves: a token of eventctl emits events that fail, finds out why,
// ends one, and retries the others together; the audit log has it all.
func TestAPI(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testAPI, "greet")
}

func (r *rig) testAPI() {
	t := r.t
	var open atomic.Bool
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		if !open.Load() {
			http.Error(w, "the ledger is closed", http.StatusUnprocessableEntity)
		}
	})
	token := strings.TrimSpace(r.eventctlSays("token", "create", "--name", "night", "--verbs", "read,read_values,emit,operate", "--canvas", canvas.String()))
	worker := r.start("worker", map[string]string{"API_LISTEN": "127.0.0.1:0", "TRUSTED_PROXIES": "10.0.0.0/8,127.0.0.0/8"})
	worker.await("the HTTP API listens")
	found := regexp.MustCompile(`the HTTP API listens[^\n]*"address":"([^"]+)"`).FindStringSubmatch(worker.text())
	if found == nil {
		t.Fatal("the log names no address")
	}
	ask := func(status int, method, path, body string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(testenv.Context(t), method, "http://"+found[1]+"/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Forwarded-For", "127.0.0.1, 192.0.2.7, 10.1.2.3") // of which the client wrote the first
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		answer, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status {
			t.Fatalf("%s %s: %s %s, %v, want %d", method, path, response.Status, answer, err, status)
		}
		return string(answer)
	}
	says := func(what, path, text string) {
		t.Helper()
		testenv.Eventually(t, what, func() bool { return strings.Contains(ask(http.StatusOK, "GET", path, ""), text) })
	}
	emit := func(more string) string {
		t.Helper()
		var emitted struct{ IDs []int64 }
		answer := ask(http.StatusCreated, "POST", "/events", fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":{"n":1}%s}`, canvas, more))
		if err := json.Unmarshal([]byte(answer), &emitted); err != nil || len(emitted.IDs) != 1 {
			t.Fatalf("%s, %v", answer, err)
		}
		return fmt.Sprint(emitted.IDs[0])
	}
	failing := []string{emit(""), emit(""), emit("")}
	for _, id := range failing {
		says("an event has failed", "/events/"+id, `"state":"failed"`)
		says("why it has failed is shown", "/events/"+id, "the ledger is closed")
	}
	late := emit(`,"delay_seconds":3600`)
	says("why an event does not run is shown", "/events/"+late+"/explain", `"why"`)
	ask(http.StatusOK, "POST", "/events/"+late+"/cancel", `{"reason":"no longer"}`)
	says("it is cancelled", "/events/"+late, `"state":"cancelled"`)

	open.Store(true)
	var operation struct {
		ID      string
		Counted int
	}
	answer := ask(http.StatusCreated, "POST", "/bulk", fmt.Sprintf(`{"verb":"retry","filter":{"canvas_id":%q,"error":"ledger"}}`, canvas))
	if err := json.Unmarshal([]byte(answer), &operation); err != nil || operation.Counted != len(failing) {
		t.Fatalf("%s, %v", answer, err)
	}
	ask(http.StatusOK, "POST", "/bulk/"+operation.ID+"/confirm", "")
	says("all are retried", "/bulk/"+operation.ID, `"state":"done","counted":3,"changed":3`)
	r.awaitSQL("all events have completed", `SELECT count(*) = 0 FROM events_v2`)
	for action, id := range map[string]string{"emit": failing[0], "retry": failing[1], "cancel": late} {
		says("the audit log has the "+action, "/audit?actor=token:night&event="+id, `"action":"`+action+`"`)
	}
	says("the audit log has the operation", "/audit", `"action":"bulk_retry"`)
	if n := one[int](r, `SELECT count(*) FROM audit_log WHERE actor = 'token:night' AND source IS DISTINCT FROM '192.0.2.7'`); n != 0 {
		t.Errorf("%d changes are not said to come from the client before the proxies", n)
	}
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with status %d", status)
	}
}

// TestAPIRefusesStrangers has a worker that others could reach start only when there is a token.
func TestAPIRefusesStrangers(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	refused := r.start("worker", map[string]string{"API_LISTEN": "0.0.0.0:0"})
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "create a token with eventctl token create") {
		t.Errorf("it ended with status %d:\n%s", status, refused.text())
	}
	alone := r.start("cron", map[string]string{"API_LISTEN": "127.0.0.1:0"})
	alone.await("so only this machine may use it, with every right")
}
