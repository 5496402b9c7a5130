package e2e_test

import (
	"strings"
	"testing"
)

// TestCheckNamesEventsWithoutAHandler: a worker that is about to be deployed says which waiting events it would have no handler for.
func TestCheckNamesEventsWithoutAHandler(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet", "flaky")
	ids := r.emit(event("greet", `1`), event("flaky", `2`), event("flaky", `3`))
	later := r.handlersFile([]string{"greet"})
	r.environment["HANDLERS_FILE"] = later
	check := func(status int, want string, words ...string) {
		t.Helper()
		if got, output := r.runWords(append([]string{"worker", "check"}, words...), r.environment["DATABASE_URL"]); got != status || !strings.Contains(output, want) {
			t.Errorf("worker check %v ended with %d, want %d and %q:\n%s", words, got, status, want, output)
		}
	}
	check(0, "ok, 1 handlers", later)
	check(1, "WORKER/flaky/_  2       "+ids[1].String()+"      no handler", later, "--against", "DATABASE_URL")
	check(1, "2 of 3 events waiting would not run", later, "--against", r.environment["DATABASE_URL"])
	check(0, "3 events waiting: each has its handler", r.handlersFile([]string{"greet", "flaky", "new"}), "--against", "DATABASE_URL")
	check(1, `--against "NO_SUCH": there is no such variable`, later, "--against", "NO_SUCH")
	check(1, "2 of 3 events waiting would not run", "--against", "DATABASE_URL")
	reader := withRoles(r)
	check(1, "2 of 3 events waiting would not run", later, "--against", reader.as("reader"))
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE attempts = 0 AND locked_at IS NULL`); n != 3 {
		t.Errorf("%d of 3 events are as they were", n)
	}
}
