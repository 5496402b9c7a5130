package e2e_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// statements counts, by Postgres' own account, what was sent to the rig's
// database but for the counting and the test's own polling.
func (r *rig) statements() int {
	r.t.Helper()
	return one[int](r, `SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
		WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		  AND query NOT LIKE '%pg_stat_statements%' AND query NOT LIKE 'SELECT count(*)%'`)
}

// TestWhatAWorkerCosts drains a backlog of 10,000 events through the deployed
// worker with its default settings, and then leaves it idle; once with Pub/Sub,
// and once with the doorbell among the statements.
func TestWhatAWorkerCosts(t *testing.T) {
	t.Parallel()
	onEachDoorbell(t, (*rig).testCosts, "greet")
}

func (r *rig) testCosts() {
	t := r.t
	if _, err := r.pool.Exec(testenv.Context(t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		t.Skipf("SKIPPED, NOT TESTED: what a worker costs: the server has no pg_stat_statements: %v", err)
	}
	events := make([]eventqueue.NewEvent, 10_000)
	for i := range events {
		events[i] = event("greet", `{"n": 1}`)
	}
	r.emit(events...)
	before := r.statements()
	r.start("worker", map[string]string{"LOG_LEVEL": "warn"})
	r.awaitSQL("the backlog is drained", `SELECT count(*) = 0 FROM events_v2`)
	perEvent := float64(r.statements()-before) / float64(len(events))
	t.Logf("%.4f statements per drained event", perEvent)
	if perEvent > 0.02 {
		t.Errorf("%.4f statements per drained event, more than 0.02", perEvent)
	}

	// Idle: there is a stretch without any statement, while pulls come and go.
	testenv.Eventually(t, "an idle worker sends no statement for two seconds", func() bool {
		before := r.statements()
		idle := time.NewTimer(2 * time.Second)
		<-idle.C
		return r.statements() == before
	})
}
