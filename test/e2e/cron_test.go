package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestRelayPublishesPendingNotifications leaves notifications pending in every way, and lets the cron
// program publish them.
func TestRelayPublishesPendingNotifications(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	ctx := testenv.Context(t)
	r.start("worker", nil).await("worker started")
	r.start("cron", nil).await("cron started")

	// In the caller's transaction, with nobody calling Notify.
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.queue.EmitTx(ctx, tx, event("greet", `"in a transaction"`)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	r.target.await(t, 1)

	// By plain SQL, far off, and then near: a restarted relay reads at once.
	if _, err := r.pool.Exec(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'WORKER', 'greet', '_', '"by SQL"')`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	far := event("greet", `"far off"`)
	far.Delay = time.Hour
	id := r.emit(far)[0]
	if !one[bool](r, `SELECT notified_at IS NULL FROM events_v2 WHERE id = $1`, id) {
		t.Error("an event that is due in an hour was notified")
	}
	if _, err := r.pool.Exec(ctx, `UPDATE events_v2 SET delay_until = clock_timestamp() + interval '2 s' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	r.start("cron", nil)
	r.target.await(t, 3)
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
}

// TestCronEmitsADueSlotOnce starts three checkers on a definition that has
// missed slots.
func TestCronEmitsADueSlotOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO cron_definitions (canvas_id, name, schedule, starts_at)
		VALUES ($1, 'nightly', 'every day', now() - interval '3 days')`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.start("cron", nil)
	}
	r.awaitSQL("the slot is recorded", `SELECT count(*) = 1 FROM cron_records`)
	r.awaitSQL("its event is there", `SELECT count(*) = 1 FROM events_v2 e JOIN cron_records c ON c.event_id = e.id
		WHERE module = 'CRON' AND name = 'nightly' AND modifier = '_'`)
}

// TestUnreadableCronDefinitionStopsNoOther: a row was written with times that
// only Postgres knows, before they were refused.
func TestUnreadableCronDefinitionStopsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	ctx := testenv.Context(t)
	const insert = `INSERT INTO cron_definitions (canvas_id, name, schedule, starts_at)
		SELECT $1, name, 'every day', starts_at FROM unnest($2::text[], $3::text[]::timestamptz[]) AS d (name, starts_at)`
	bad, starts := []string{"never", "ever", "far"}, []string{"infinity", "-infinity", "200000-01-01"}
	for i := range bad {
		if _, err := r.pool.Exec(ctx, insert, [16]byte(canvas), bad[i:i+1], starts[i:i+1]); err == nil {
			t.Errorf("a definition that starts at %s is not refused", starts[i])
		}
	}
	if _, err := r.pool.Exec(ctx, `ALTER TABLE cron_definitions DROP CONSTRAINT cron_definitions_readable`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pool.Exec(ctx, insert, [16]byte(canvas), bad, starts); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pool.Exec(ctx, insert, [16]byte(canvas), []string{"nightly"}, []string{"2026-01-01"}); err != nil {
		t.Fatal(err)
	}
	cron := r.start("cron", nil)
	r.awaitSQL("the slot of the other is recorded", `SELECT count(*) = 1 FROM cron_records`)
	cron.await("a cron definition cannot be read and emits nothing")
}

func get(t *testing.T, url string) (int, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
