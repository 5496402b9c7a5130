package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestProgramsWorkBehindASessionPooler is TestProgramsWorkWithoutPubSub through PgBouncer, which passes no
// settings on when a program connects.
func TestProgramsWorkBehindASessionPooler(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet", "flaky")
	r.environment["DATABASE_URL"] = testenv.PgBouncer(t, r.environment["DATABASE_URL"],
		map[string]string{"pool_mode": "session", "default_pool_size": "60"})
	r.target.failOnce("flaky")
	worker := r.start("worker", map[string]string{"RETAIN_HISTORY": "true"})
	r.start("cron", map[string]string{"RELAY_INTERVAL": "1s"}).await("cron started")
	worker.await("worker started")
	count := r.emitInEveryForm()
	r.awaitSQL("all events have completed", `SELECT count(*) = $1 FROM event_log WHERE status = 'COMPLETED'`, count)
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
}

// TestProgramsRefuseATransactionPooler: each program says what to set, and does
// nothing half.
func TestProgramsRefuseATransactionPooler(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	direct := r.environment["DATABASE_URL"]
	for _, mode := range []string{"transaction", "statement"} {
		url := testenv.PgBouncer(t, direct, map[string]string{"pool_mode": mode, "ignore_startup_parameters": "statement_timeout"})
		for _, command := range commands {
			status, output := r.run(command, url)
			if status != 1 || !strings.Contains(output, "pool_mode = session") {
				t.Errorf("%s before a pooler of %ss ended with %d:\n%s", command, mode, status, output)
			}
		}
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2`); n != 0 {
		t.Errorf("%d events were emitted all the same", n)
	}
}

// commands are one of each kind that opens the database.
var commands = []string{
	"worker", "cron", "eventctl migrate up", "eventctl migrate status", "eventctl stats",
	"eventctl emit --canvas 00000000-0000-0000-0000-000000000001 --module M --name N --value 1",
}

// run runs a command to its end.
func (r *rig) run(command, databaseURL string) (status int, output string) {
	r.t.Helper()
	return r.runWords(strings.Fields(command), databaseURL)
}

func (r *rig) runWords(words []string, databaseURL string) (status int, output string) {
	r.t.Helper()
	cmd := r.command(words[0], words[1:]...)
	cmd.Env = append(cmd.Env, "DATABASE_URL="+databaseURL) // the last one counts
	out, _ := cmd.CombinedOutput()                         // the status says it
	return cmd.ProcessState.ExitCode(), string(out)
}

// outcome runs a command to its end, or until it says that it waits for the database:
// where a URL can be read, nobody may be there yet.
func (r *rig) outcome(command, databaseURL string) (status int, output string) {
	r.t.Helper()
	if words := strings.Fields(command); len(words) > 1 {
		return r.run(command, databaseURL)
	}
	p := r.start(command, map[string]string{"DATABASE_URL": databaseURL})
	if !p.says("cannot be used yet") {
		return p.wait(), p.text()
	}
	if status := p.terminate(); status != 0 {
		r.t.Errorf("%s ended with %d when it was stopped while it waited", command, status)
	}
	return -1, p.text()
}

// TestNoProgramShowsThePassword of a database URL that is wrong; the package
// pgsession tries more of them.
func TestNoProgramShowsThePassword(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	const secret = "Tr0ub4dor"
	for _, spelling := range []string{
		"host=127.0.0.1 port=x password = %s", "host=127.0.0.1 port=1 password='%s", "host=127.0.0.1 port=1 user=u password=two %s dbname=d",
		"host= password=%s port=1", "host=127.0.0.1 port=1 PASSWORD=%s", "postgres://u:%s@127.0.0.1:x/d", "postgres://u:12/%s@127.0.0.1:1/d",
		"postgres://u:12?%s@127.0.0.1:1/d", "postgres://u:%%zz%s@127.0.0.1:1/d", "u:%s@127.0.0.1:1/d",
	} {
		for _, command := range commands {
			status, output := r.outcome(command, fmt.Sprintf(spelling, secret))
			if status == 0 || strings.Contains(output, secret) {
				t.Errorf("%s with %q ended with %d and says\n%s", command, spelling, status, output)
			}
		}
	}
}
