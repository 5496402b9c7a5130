package e2e_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestDashboardSessionEndsWithItsToken logs in to the dashboard that a deployed cron serves, with a token of eventctl, and loses its session
// with that token. Without an address there is nothing to serve it on.
func TestDashboardSessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	refused := r.start("cron", map[string]string{"DASHBOARD": "true"})
	if status := refused.wait(); status == 0 || !strings.Contains(refused.text(), "API_LISTEN") {
		t.Errorf("it ended with status %d:\n%s", status, refused.text())
	}
	token := strings.TrimSpace(r.eventctlSays("token", "create", "--name", "night", "--verbs", "read"))
	listed := r.eventctlSays("token", "list", "--json")
	before, _, _ := strings.Cut(listed, `","name"`)
	id := before[strings.LastIndex(before, `"`)+1:]
	r.eventctlSays("token", "create", "--name", "another", "--verbs", "read") // without any, the machine itself would be let in
	cron := r.start("cron", map[string]string{"API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true"})
	cron.await("the HTTP API listens")
	found := regexp.MustCompile(`the HTTP API listens[^\n]*"address":"([^"]+)"`).FindStringSubmatch(cron.text())
	if found == nil {
		t.Fatal("the log names no address")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client, address := &http.Client{Jar: jar}, "http://"+found[1]
	shows := func(what string, request *http.Request, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		page, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(page), "<h1>"+what+"</h1>") {
			t.Fatalf("%s, %v, want the page %s: %s", response.Status, err, what, page)
		}
	}
	get := func(path string) (*http.Request, error) {
		return http.NewRequestWithContext(testenv.Context(t), http.MethodGet, address+path, http.NoBody)
	}
	request, err := get("/failed")
	shows("Log in", request, err)
	request, err = http.NewRequestWithContext(testenv.Context(t), http.MethodPost, address+"/login", strings.NewReader(url.Values{"token": {token}, "next": {"/failed"}}.Encode()))
	if err == nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	shows("Failed", request, err)
	request, err = get("/handlers")
	shows("Handlers", request, err)
	r.eventctlSays("token", "revoke", id)
	request, err = get("/handlers")
	shows("Log in", request, err)
	if status := cron.terminate(); status != 0 {
		t.Errorf("cron ended with status %d", status)
	}
}
