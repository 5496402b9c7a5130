package e2e_test

import (
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// sent are the statements that were sent to the rig's database, by their texts, but for
// the counting and the test's own polling.
func (r *rig) sent() map[string]int {
	r.t.Helper()
	rows, err := r.pool.Query(testenv.Context(r.t), `SELECT query, calls FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'SELECT count(*)%'`)
	if err != nil {
		r.t.Fatal(err)
	}
	calls := map[string]int{}
	var text string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&text, &n}, func() error { calls[text] += n; return nil }); err != nil {
		r.t.Fatal(err)
	}
	return calls
}

// TestStatementsOfADeployedWorkerAreBounded drains a backlog through the deployed worker with its
// default settings, and then leaves it idle; once with Pub/Sub, and once with the notifier
// among the statements. How many events come together in a statement depends on the
// machine, and is counted in package worker without one; here it is shown that the
// program sends nothing for each event besides.
func TestStatementsOfADeployedWorkerAreBounded(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testCosts, "greet")
}

func (r *rig) testCosts() {
	t := r.t
	if _, err := r.pool.Exec(testenv.Context(t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		testenv.Missing(t, "what a worker costs: the server has no pg_stat_statements: %v", err)
	}
	events := make([]eventqueue.NewEvent, 3_000)
	for i := range events {
		events[i] = event("greet", `{"n": 1}`)
	}
	r.emit(events...)
	r.start("worker", map[string]string{"LOG_LEVEL": "warn"})
	r.awaitSQL("the backlog is drained", `SELECT count(*) = 0 FROM events_v2`)
	all := 0
	for text, calls := range r.sent() {
		all += calls
		t.Logf("%d times: %.150s", calls, text)
		if calls >= len(events)/2 {
			t.Errorf("for %d events this was sent %d times: %s", len(events), calls, text)
		}
	}
	t.Logf("%d statements for %d events", all, len(events))

	// Idle: there is a stretch without any statement, while pulls come and go.
	testenv.Eventually(t, "an idle worker sends no statement for two seconds", func() bool {
		before := r.sent()
		idle := time.NewTimer(2 * time.Second)
		<-idle.C
		return maps.Equal(r.sent(), before)
	})
}
