package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"eventsv2/test/testenv"
)

const sharesSubscription = "ready, but this subscription has notifications of another queue, so that events start late"

// TestQueuesOnOneSubscriptionReturnForeignNotifications (I2): two deployments with the same names of topic and subscription, such as the defaults, get each other's notifications. They
// give them back instead of dropping them, so that no event waits until the relay takes it for lost, and log, readiness and the
// overview say what is wrong.
func TestQueuesOnOneSubscriptionReturnForeignNotifications(t *testing.T) {
	t.Parallel()
	const events = 20
	rigs := []*rig{newRig(t, "greet"), newRig(t, "greet")}
	for _, name := range []string{"PUBSUB_TOPIC", "PUBSUB_SUBSCRIPTION"} {
		rigs[1].environment[name] = rigs[0].environment[name]
	}
	var workers, crons []*program
	for _, r := range rigs {
		// The databases of tests are copies of one. The identity is there once a program has agreed on the lock timeout.
		if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO events_v2_settings (lock_timeout) VALUES ('1 minute')
			ON CONFLICT (singleton) DO UPDATE SET queue_id = gen_random_uuid()`); err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{"LOG_LEVEL": "info", "API_LISTEN": "127.0.0.1:0", "DASHBOARD": "true"}
		workers = append(workers, r.start("worker", settings))
		crons = append(crons, r.start("cron", map[string]string{"RELAY_INTERVAL": "1s"}))
	}
	for i := range rigs {
		workers[i].await("worker started")
		crons[i].await("cron started")
	}
	emit := func(r *rig, count int) {
		t.Helper()
		const sql = `SELECT events_emit($1, 'WORKER', 'greet', '1') FROM generate_series(1, $2)` // cron, which knows its queue, publishes
		if _, err := r.pool.Exec(testenv.Context(t), sql, [16]byte(canvas), count); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rigs {
		emit(r, events)
	}
	for _, r := range rigs {
		r.target.await(t, events)
	}
	for _, r := range rigs {
		r.awaitSQL("all have ended", `SELECT count(*) = 0 FROM events_v2`)
	}
	// Which worker gets a notification is drawn, so one of another queue may come late.
	for i, r := range rigs {
		testenv.Eventually(t, "a worker says that the subscription is shared", func() bool {
			emit(rigs[1-i], 1)
			status, text := workers[i].page("/readyz")
			return status == http.StatusOK && strings.HasPrefix(text, sharesSubscription)
		})
		workers[i].await("this subscription has notifications of another queue")
		r.awaitSQL("it is recorded", `SELECT foreign_at IS NOT NULL FROM events_v2_settings`)
		testenv.Eventually(t, "the overview says so", func() bool {
			status, text := pageAt(t, workers[i].site(t)+"/")
			return status == http.StatusOK && strings.Contains(text, "This subscription has notifications of another queue")
		})
	}
}
