package eventctl

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestServeAdmitsByConfiguredAccess serves the API and the dashboard: to the machine itself without any access, and to holders of a token with one; and
// refuses an address that others can reach while nobody has one.
func TestServeAdmitsByConfiguredAccess(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.env["NOTIFIER"] = "postgres"
	c.run("serve", "--address", "0.0.0.0:0").is(exitFailed, "", "create a token with eventctl token create")
	c.run("serve", "--address", "here").is(exitBadInput, "", "is not host:port")
	c.env["ACCESS_FILE"] = c.file("issuers: 7")
	c.run("serve").is(exitBadInput, "", "ACCESS_FILE: ")
	delete(c.env, "ACCESS_FILE")
	c.env["DASHBOARD_KEY"] = "short"
	c.run("serve").is(exitBadInput, "", "DASHBOARD_KEY is 5 characters long")
	c.env["DASHBOARD"], c.env["DASHBOARD_KEY"] = "true", strings.Repeat("k", 32)
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan result, 1)
	go func() {
		var stderr bytes.Buffer
		status := Run(ctx, []string{"serve", "--address", "127.0.0.1:0"}, c.env, strings.NewReader(""), in, &stderr)
		_ = in.Close()
		ended <- result{t, status, "", stderr.String()}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "only this machine may use it, with every right") {
		t.Fatalf("it says %q, %v: %+v", line, err, <-ended)
	}
	url := strings.Split(strings.Fields(line)[5], ";")[0]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	status := func(path, token string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(url+path, "/v1/../", "/", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := status("rules?canvas_id="+canvasA, ""); got != http.StatusOK {
		t.Errorf("the machine itself is answered with %d", got)
	}
	if got := status("../", ""); got != http.StatusOK {
		t.Errorf("the machine itself is answered by the dashboard with %d", got)
	}
	token := strings.TrimSpace(c.run("token", "create", "--name", "a", "--verbs", "read").is(exitOK, "", "").out)
	if got := status("rules?canvas_id="+canvasA, ""); got != http.StatusUnauthorized {
		t.Errorf("with a token, the machine itself is answered with %d", got)
	}
	if got := status("rules?canvas_id="+canvasA, token); got != http.StatusOK {
		t.Errorf("the token is answered with %d", got)
	}
	if got := status("../failed", ""); got != http.StatusSeeOther {
		t.Errorf("who has no token is answered by the dashboard with %d", got)
	}
	if got := status("../failed", token); got != http.StatusOK {
		t.Errorf("the token is answered by the dashboard with %d", got)
	}
	if got := status("../login", ""); got != http.StatusOK {
		t.Errorf("the page for logging in is answered with %d", got)
	}
	stop()
	(<-ended).is(exitOK, "", `eventctl: warning: refused requests: 401 to 127.0.0.1, at first for "GET /v1/rules"`)
}

// TestServeWorksBelowAPath: all that the dashboard leads to is below DASHBOARD_PREFIX, whether a proxy has passed that on or taken it away.
func TestServeWorksBelowAPath(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.env["NOTIFIER"], c.env["DASHBOARD"] = "postgres", "true"
	for _, wrong := range []string{"admin", "/v1", "/v1/x", "//evil.example", "/a b", "/a/../b", "https://a"} {
		c.env["DASHBOARD_PREFIX"] = wrong
		c.run("serve").is(exitBadInput, "", "DASHBOARD_PREFIX is")
	}
	c.env["DASHBOARD_PREFIX"] = "/admin/events/"
	c.run("token", "create", "--name", "nights", "--verbs", "read").is(exitOK, "", "")
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	out, in := io.Pipe()
	ended := make(chan result, 1)
	go func() {
		var stderr bytes.Buffer
		status := Run(ctx, []string{"serve", "--address", "127.0.0.1:0"}, c.env, strings.NewReader(""), in, &stderr)
		_ = in.Close()
		ended <- result{t, status, "", stderr.String()}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "/admin/events/") {
		t.Fatalf("it says %q, %v: %+v", line, err, <-ended)
	}
	address := strings.TrimSuffix(strings.Fields(line)[5], "/v1/")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{
		"/admin/events/failed": "/admin/events/login?next=%2Ffailed", "/failed": "/admin/events/login?next=%2Ffailed",
		"/admin/events": "/admin/events/login", "/": "/admin/events/login", "/admin/events/": "/admin/events/login",
		"/admin/events/login": "", "/login": "",
	} {
		response, err := client.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if got := response.Header.Get("Location"); got != want {
			t.Errorf("%s leads to %q, want %q", path, got, want)
		}
		if want == "" && !strings.Contains(string(page), `action="/admin/events/login"`) {
			t.Errorf("%s has no form for logging in below the path:\n%s", path, page)
		}
	}
	stop()
	if r := <-ended; r.status != exitOK {
		t.Errorf("%+v", r)
	}
}
