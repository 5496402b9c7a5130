package e2e_test

import (
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

// TestCronDeletesOldHistory has two cron processes delete what a worker has kept.
func TestCronDeletesOldHistory(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	ctx := testenv.Context(t)
	r.start("worker", map[string]string{"RETAIN_HISTORY": "true"}).await("worker started")
	ids := r.emit(event("greet", `1`), event("greet", `2`), event("greet", `3`), event("greet", `4`))
	r.awaitSQL("the history is kept", `SELECT count(*) = 4 FROM event_log`)
	if _, err := r.pool.Exec(ctx, `UPDATE event_log SET enqueued_at = now() - interval '81 h', created_at = now() - interval '80 h' WHERE id <> $1`, ids[3]); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pool.Exec(ctx, `UPDATE event_log SET status = 'FAILED', last_error = 'no luck' WHERE id = $1`, ids[0]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.start("cron", map[string]string{"HISTORY_COMPLETED_FOR": "72h", "HISTORY_FAILED_FOR": "2160h"})
	}
	r.awaitSQL("the old completed events are gone", `SELECT count(*) = 2 FROM event_log`)
	if !one[bool](r, `SELECT array_agg(id ORDER BY id) = ARRAY[$1, $2]::bigint[] FROM event_log`, ids[0], ids[3]) {
		t.Error("others are gone than the old completed events")
	}
}

// TestCronDeletesOldAuditEntries has cron delete old entries of the audit log and old changes of many events,
// and write who has lifted a rule whose end has come.
func TestCronDeletesOldAuditEntries(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	ctx := testenv.Context(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := r.pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	r.operating(0, "", "pause", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet", "--until", "2130-01-31T09:00:00Z")
	r.operating(0, "", "cron", "set", "--canvas", canvas.String(), "--name", "nightly", "--schedule", "every day")
	r.operating(0, "", "cron", "disable", "--canvas", canvas.String(), "--name", "nightly")
	r.operating(0, "", "cron", "remove", "--canvas", canvas.String(), "--name", "nightly")
	r.operating(0, "", "settings", "set", "lock-timeout", "2m")
	exec(`UPDATE audit_log SET at = now() - interval '31 days' WHERE action = 'pause'`)
	exec(`UPDATE scheduling_rules SET until = now()`)
	exec(`INSERT INTO bulk_operations (id, counted_at, expires_at, identity, actor, source, via, change, counted, last_id, state)
		SELECT gen_random_uuid(), now() - days * interval '1 day', now(), 'a', 'a', '', 'api', '{}', 0, 0, 'counted' FROM generate_series(0, 8, 8) AS days`)
	r.start("cron", map[string]string{"AUDIT_LOG_FOR": "720h"})
	r.awaitSQL("the old entries are gone", `SELECT NOT EXISTS (SELECT FROM audit_log WHERE action = 'pause') AND (SELECT count(*) FROM bulk_operations) = 1`)
	r.awaitSQL("it is written who has lifted the rule", `SELECT EXISTS (SELECT FROM audit_log WHERE action = 'unpause' AND actor = 'cron' AND via = 'cron')`)
	if !one[bool](r, `SELECT array_agg(action ORDER BY id) @> ARRAY['set_cron', 'disable_cron', 'remove_cron', 'set_lock_timeout'] FROM audit_log WHERE via = 'eventctl'`) {
		t.Error("the other entries are not what eventctl did")
	}
}

// TestEventOfADeadWorkerIsRequeued kills a worker while it holds an event. While
// its lock is valid the event is live to everybody; then an operator does not wait
// for the relay.
func TestEventOfADeadWorkerIsRequeued(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	ctx := testenv.Context(t)
	hold := map[string]string{"LOCK_TIMEOUT": "10h"}
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	r.target.holdUntil(ended)
	dead := r.start("worker", hold)
	dead.await("worker started")
	id := r.emit(event("greet", `1`))[0]
	r.target.await(t, 1)
	dead.Kill()
	dead.wait()
	r.target.answerWith(nil)
	r.start("worker", hold).await("worker started")

	requeue := func(status int, want string) {
		t.Helper()
		p := r.start("eventctl", hold, "requeue", id.String())
		if got := p.wait(); got != status || !strings.Contains(p.text(), want) {
			t.Errorf("eventctl requeue: exit status %d, want %d; stderr %q, want %q", got, status, p.text(), want)
		}
	}
	requeue(3, "is running: a worker holds its lock, which is valid for ")
	if _, err := r.pool.Exec(ctx, `UPDATE events_v2 SET locked_at = locked_at - interval '10 h'`); err != nil {
		t.Fatal(err)
	}
	requeue(0, "")
	r.target.await(t, 2)
	r.awaitSQL("the event has ended", `SELECT count(*) = 0 FROM events_v2`)
	requeue(3, "is neither in the queue nor in event_log")
}
