package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eventsv2/migrations"
	"eventsv2/test/testenv"
)

// TestProgramsRunOnANewerSchema: they work on the schema of a later version, unless it says that it has lost what they need.
func TestProgramsRunOnANewerSchema(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	next := migrations.Latest() + 1
	one[int64](r, `INSERT INTO eventsv2_schema_version (version_id, is_applied) VALUES ($1, true) RETURNING version_id`, next)
	worker, cron := r.start("worker", nil), r.start("cron", nil)
	cron.await("cron started")
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}

	if _, err := r.pool.Exec(testenv.Context(t), fmt.Sprintf(`CREATE FUNCTION eventsv2_oldest_program() RETURNS bigint LANGUAGE sql IMMUTABLE RETURN %d`, next)); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"worker": nil, "cron": nil, "eventctl": {"stats"}} {
		p := r.start(name, nil, args...)
		if status := p.wait(); status != 1 || !strings.Contains(p.text(), fmt.Sprintf("can work, and this binary was built for version %d: deploy a later version of it", next-1)) {
			t.Errorf("%s on a schema that has lost what it needs ended with %d: %s", name, status, p.text())
		}
	}
}

// TestUpgradePageWorks runs the commands of docs/upgrading.md on the schema of an earlier version.
func TestUpgradePageWorks(t *testing.T) {
	t.Parallel()
	p := newPostgresRig(t).shownPage("upgrading.md")
	p.emit(event("greet", `1`))
	if _, err := migrations.Down(testenv.Context(t), p.environment["DATABASE_URL"], 1); err != nil {
		t.Fatal(err)
	}
	handlers, err := os.ReadFile(p.handlersFile([]string{"greet"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "handlers.yaml"), handlers, 0o600); err != nil {
		t.Fatal(err)
	}
	p.runSession()
	if err := migrations.Check(testenv.Context(t), p.pool); err != nil {
		t.Error(err)
	}
}
