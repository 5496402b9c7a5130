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

// TestTheEventOfADeadWorkerIsRequeued kills a worker while it holds an event. While
// its lock is valid the event is live to everybody; then an operator does not wait
// for the relay.
func TestTheEventOfADeadWorkerIsRequeued(t *testing.T) {
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
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
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
