package e2e_test

import (
	"strings"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestCronSkipsSlots has cron skip the slots of a handler that is paused, and those that come while an earlier event runs, and shows that.
func TestCronSkipsSlots(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, time.Minute) // a slot a minute
	r := newPostgresRig(t, "greet")
	r.eventctl("cron", "set", "--canvas", canvas.String(), "--name", "paused", "--schedule", "every minute", "--skip-if-paused")
	r.eventctl("cron", "set", "--canvas", canvas.String(), "--name", "slow", "--schedule", "every minute", "--skip-if-running", "--missed", "all")
	r.operating(0, "", "pause", "--canvas", canvas.String(), "--module", "CRON", "--name", "paused")
	r.exec(`UPDATE cron_definitions SET starts_at = now() - interval '3 minutes'`)
	r.start("cron", nil)
	r.awaitSQL("slots are recorded as skipped", `SELECT count(DISTINCT skipped) = 2 FROM cron_records WHERE skipped IS NOT NULL AND event_id = 0`)
	if got := one[string](r, `SELECT string_agg(name || count, ' ') FROM (SELECT name, count(*) FROM events_v2 GROUP BY name) AS of`); got != "slow1" {
		t.Errorf("the events are %s, want one of slow", got)
	}
	for name, want := range map[string]string{"paused": "skipped: paused", "slow": "skipped: running"} {
		if said := r.eventctlSays("cron", "show", "--canvas", canvas.String(), "--name", name); !strings.Contains(said, want) {
			t.Errorf("it is shown as %s, want %q", said, want)
		}
	}
	if said := r.eventctlSays("cron", "list"); !strings.Contains(said, "(skipped: paused)") {
		t.Errorf("the list is %s", said)
	}
	r.operating(0, "", "unpause", "--canvas", canvas.String(), "--module", "CRON", "--name", "paused")
	r.exec(`DELETE FROM cron_records r WHERE slot = (SELECT max(slot) FROM cron_records WHERE cron_id = r.cron_id)`)
	r.awaitSQL("a slot after the pause has its event", `SELECT count(*) > 0 FROM events_v2 WHERE name = 'paused'`)
}
