package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// replaceFile writes a file as a mounted secret is written: whole, in one step.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	fresh := path + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(fresh, path); err != nil {
		t.Fatal(err)
	}
}

// TestPasswordCanBeRotated: worker and cron read it from a file, and take the new one without a restart when all of
// their connections have been closed: those of the pool, of the heartbeats, and those that listen.
func TestPasswordCanBeRotated(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := withRoles(newPostgresRig(t, "greet", "long"))
	secret := filepath.Join(t.TempDir(), "password")
	login := func(role string) string {
		u, err := url.Parse(r.direct)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(r.prefix + role)
		return u.String()
	}
	rotate := func(password string) {
		t.Helper()
		for _, role := range []string{"worker", "cron"} {
			r.exec(fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, r.prefix+role, password))
		}
	}
	start := func(name string) *program {
		return r.start(name, map[string]string{"DATABASE_URL": login(name), "DATABASE_PASSWORD_FILE": secret, "RETAIN_HISTORY": "true", "RELAY_INTERVAL": "1s"})
	}
	missing := start("worker")
	if status := missing.wait(); status == 0 || !strings.Contains(missing.text(), "read the password of the database (DATABASE_PASSWORD_FILE): open "+secret) {
		t.Errorf("without the file the worker ended with %d", status)
	}
	rotate("canary-one")
	replaceFile(t, secret, "canary-one\n")
	programs := []*program{start("worker"), start("cron")}
	for _, p := range programs {
		p.await(p.Name + " started")
	}
	let := make(chan struct{})
	r.target.answerWith(func(_ http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/long" {
			select {
			case <-let:
			case <-request.Context().Done():
			}
		}
	})
	r.emit(event("greet", `1`), event("long", `2`))
	r.target.await(t, 2)
	r.awaitSQL("the short one has ended", `SELECT count(*) = 1 FROM event_log`)

	rotate("canary-two")
	closed := one[int](r.rig, `SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM pg_stat_activity WHERE usename IN ($1, $2)`, r.prefix+"worker", r.prefix+"cron")
	if closed < 4 {
		t.Errorf("%d connections were closed, want those of two pools, of heartbeats and of listeners", closed)
	}
	r.emit(event("greet", `3`))
	for _, p := range programs {
		p.await("password authentication failed")
	}
	replaceFile(t, secret, "canary-two")
	for _, p := range programs {
		p.awaitReady()
	}
	close(let)
	r.awaitSQL("all have ended, and none ran twice", `SELECT count(*) = 3 AND max(attempts) = 1 FROM event_log`)
	r.awaitSQL("both listen again", `SELECT count(*) = 2 FROM pg_stat_activity WHERE usename IN ($1, $2) AND (query LIKE 'LISTEN%' OR query LIKE '%pg_listening_channels%')`, r.prefix+"worker", r.prefix+"cron")
	for _, p := range programs {
		if status := p.terminate(); status != 0 {
			t.Errorf("%s ended with %d", p.Name, status)
		}
		if strings.Contains(p.text(), "canary") {
			t.Errorf("the log of %s has the password", p.Name)
		}
	}
}
