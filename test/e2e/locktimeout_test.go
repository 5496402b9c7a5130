package e2e_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestOneLockTimeoutForAll (I3, I4): the first program that starts sets it, another one
// is refused by name, eventctl goes by it, and it can be changed without a moment in
// which a lock of the old length is judged by the new one.
func TestOneLockTimeoutForAll(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "job")
	r.start("worker", map[string]string{"LOCK_TIMEOUT": "10m"}).await("worker started")
	for _, program := range []string{"worker", "cron"} {
		p := r.start(program, map[string]string{"LOCK_TIMEOUT": "1m"})
		if status := p.wait(); status == 0 || !strings.Contains(p.text(), "is 1m0s here and 10m0s in the database") ||
			!strings.Contains(p.text(), "eventctl settings set lock-timeout 1m0s") {
			t.Errorf("a %s with another lock timeout ended with status %d and said: %s", program, status, p.text())
		}
		r.start(program, nil).await(program + " started")
	}
	// Locked two minutes ago, which is long by the default and short by the truth.
	id := r.emit(event("other", `1`))[0]
	if _, err := r.pool.Exec(t.Context(), `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes', attempts = 1 WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	requeue := func(when string) {
		t.Helper()
		if out := r.eventctlSays("requeue", "--no-notify", id.String()); !strings.Contains(out, "is running") {
			t.Errorf("%s eventctl requeue says %q, want it refused", when, out)
		}
	}
	requeue("with a lock timeout of 10m")
	if out := r.eventctlSays("settings", "set", "lock-timeout", "1m"); !strings.Contains(out, "lock timeout: 1m0s, before that 10m0s") {
		t.Errorf("the change says %q", out)
	}
	requeue("while programs with the old lock timeout may run")
	r.start("worker", map[string]string{"LOCK_TIMEOUT": "1m"}).await("worker started")
	if out := r.eventctlSays("settings", "finalize"); !strings.Contains(out, id.String()) {
		t.Errorf("settling while event %s needs the old lock timeout says %q, want it refused", id, out)
	}
	if out := r.eventctlSays("settings", "finalize", "--force"); !strings.Contains(out, "lock timeout: 1m0s\n") {
		t.Errorf("settling by force says %q", out)
	}
	if out := r.eventctlSays("requeue", "--no-notify", id.String()); !strings.Contains(out, "requeued 1 event") {
		t.Errorf("when it is finalized eventctl requeue says %q", out)
	}
}

// TestDashboardUsesTheLockTimeout: it goes by the setting of the database, also after that was changed while it runs.
func TestDashboardUsesTheLockTimeout(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "job")
	r.eventctlSays("settings", "set", "lock-timeout", "10m")
	cron := r.start("cron", map[string]string{"API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true"})
	cron.await("the HTTP API listens")
	found := regexp.MustCompile(`the HTTP API listens[^\n]*"address":"([^"]+)"`).FindStringSubmatch(cron.text())
	if found == nil {
		t.Fatal("the log names no address")
	}
	id := r.emit(event("other", `1`))[0]
	if _, err := r.pool.Exec(t.Context(), `UPDATE events_v2 SET locked_at = clock_timestamp() - interval '2 minutes', attempts = 1 WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	shows := func(when, want string) {
		t.Helper()
		request, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://"+found[1]+"/events/"+id.String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		page, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(page), want) {
			t.Errorf("%s: %s, %v, want %q in the page: %s", when, response.Status, err, want, page)
		}
	}
	shows("with a lock timeout of 10m", `class="state running"`)
	r.eventctlSays("settings", "set", "lock-timeout", "1m")
	shows("while programs with the old lock timeout may run", `class="state running"`)
	r.eventctlSays("settings", "finalize", "--force")
	shows("with a lock timeout of 1m", `class="state expired"`)
}

// eventctlSays runs a command and returns all that it says.
func (r *rig) eventctlSays(args ...string) string {
	r.t.Helper()
	out, _ := r.command("eventctl", args...).CombinedOutput() // the status is in what it says
	return string(out)
}
