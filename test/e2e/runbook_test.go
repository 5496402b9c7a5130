package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// rehearsed are the rehearsals of the run book, by alert: a fault, the alert, the commands of its section, and its end.
var rehearsed = map[string]func(t *testing.T){
	"EventsNoCron":            rehearseNoCron,
	"EventsNothingRuns":       rehearseNothingRuns,
	"EventsLate":              rehearseLate,
	"EventsFailed":            rehearseFailed,
	"EventsMostRunsFail":      rehearseMostRunsFail,
	"EventsTargetAway":        rehearseTargetAway,
	"EventsWakeUpsLeftOut":    rehearseWakeUpsLeftOut,
	"EventsNotPublished":      rehearseNotPublished,
	"EventsNotificationsLost": rehearseNotificationsLost,
	"EventsLocksLost":         rehearseLocksLost,
	"EventsPoolExhausted":     rehearsePoolExhausted,
	"EventsGrow":              rehearseGrow,
}

// TestRunBookWorks rehearses each of its sections, with the programs as they are deployed and a real Prometheus with
// the alerts as they are deployed, but for their times.
func TestRunBookWorks(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, time.Hour/faster) // the longest time of an alert
	all, _ := alerts(t)
	for _, a := range all {
		t.Run(a.Alert, func(t *testing.T) {
			t.Parallel()
			rehearsal := rehearsed[a.Alert]
			if rehearsal == nil {
				t.Fatalf("nobody has rehearsed %s", a.Annotations.Runbook)
			}
			rehearsal(t)
		})
	}
}

// reported is how programs are scraped.
func reported(change map[string]string) map[string]string {
	settings := map[string]string{"OTEL_METRICS_EXPORTER": "prometheus", "WORKER_GRACE_PERIOD": "0s"}
	for name, value := range change {
		settings[name] = value
	}
	return settings
}

func (r *rig) startWorker(change map[string]string) *program {
	r.t.Helper()
	worker := r.start("worker", reported(change))
	worker.await("worker started")
	return worker
}

// startCron starts a relay, which counts what is pending within two seconds, and then once a minute.
func (r *rig) startCron(change map[string]string) *program {
	r.t.Helper()
	cron := r.start("cron", reported(change))
	cron.await("cron started")
	return cron
}

// countedAnew replaces cron, so that what is pending is counted at once.
func (h *rehearsal) countedAnew(cron *program, others ...*program) (newer *program) {
	h.rig.t.Helper()
	newer = h.startCron(nil)
	h.scrape(append(others, newer)...)
	cron.terminate()
	return newer
}

func rehearseNoCron(t *testing.T) {
	r := newPostgresRig(t, "greet")
	worker, cron := r.startWorker(nil), r.startCron(nil)
	h := r.rehearse("EventsNoCron", worker, cron)
	testenv.Eventually(t, "cron is scraped", func() bool { return h.hasData(`target_info{service_name="eventsv2-cron"}`) })
	cron.Kill()
	h.fires()
	h.scrape(worker, r.startCron(nil))
	h.resolves()
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	h.says(h.run("It"), "")
}

func rehearseNothingRuns(t *testing.T) {
	r := newPostgresRig(t, "greet")
	ids := r.emit(event("greet", `1`))
	h := r.rehearse("EventsNothingRuns")
	h.dueSince(ids...)
	cron := r.startCron(nil)
	h.scrape(cron)
	h.fires()
	h.of(ids...)
	h.says(h.run("Look"), "No worker runs.")
	h.run("Do")
	worker := r.startWorker(nil)
	r.target.await(t, 1)
	r.emitLater()
	h.countedAnew(cron, worker)
	h.resolves()
}

// emitLater emits an event that is not due: of a handler without events the last count is shown for three minutes.
func (r *rig) emitLater() {
	r.t.Helper()
	later := event("greet", `2`)
	later.Delay = time.Hour
	r.emit(later)
}

func rehearseLate(t *testing.T) {
	r := newPostgresRig(t, "greet", "other")
	ids := r.emit(event("greet", `1`))
	h := r.rehearse("EventsLate")
	h.dueSince(ids...)
	r.startWorker(map[string]string{"HANDLERS_FILE": r.handlersFile([]string{"other"})})
	cron := r.startCron(nil)
	h.scrape(cron)
	h.fires(func() { r.emit(event("other", `1`)) })
	h.of(ids...)
	h.says(h.run("Look"), "greet", "No live worker, of which there are 1, has its handler")
	r.startWorker(nil) // which has it
	h.run("Do")
	r.awaitSQL("it has run", `SELECT count(*) = 0 FROM events_v2 WHERE name = 'greet'`)
	r.emitLater()
	h.countedAnew(cron)
	h.resolves()
}

func rehearseFailed(t *testing.T) {
	r := newPostgresRig(t, "greet")
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	h := r.rehearse("EventsFailed", r.startWorker(nil))
	ids := r.emit(event("greet", `1`))
	h.fires()
	h.of(ids...)
	h.words["connection refused"] = "400"
	h.says(h.run("Look"), "400", "greet")
	r.target.answerWith(nil)
	h.says(h.run("Do"), "1")
	r.awaitSQL("it has completed", `SELECT count(*) = 0 FROM events_v2`)
	h.resolves()
}

func rehearseMostRunsFail(t *testing.T) {
	r := newPostgresRig(t, "greet")
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusRequestTimeout) })
	file := r.handlersFileWith("{base: 100ms, max: 1s}, max_retries: 1000", []string{"greet"})
	h := r.rehearse("EventsMostRunsFail", r.startWorker(map[string]string{"HANDLERS_FILE": file}), r.startCron(nil))
	for range 30 {
		h.of(r.emit(event("greet", `1`))...)
	}
	h.fires()
	h.says(h.run("Look"), "408")
	for i, line := range h.parts["Do"] {
		if i == 1 { // the target is repaired while the handler is held back
			r.target.answerWith(nil)
		}
		h.command(line)
	}
	r.awaitSQL("all have completed", `SELECT count(*) = 0 FROM events_v2`)
	h.resolves()
}

func rehearseTargetAway(t *testing.T) {
	r := newPostgresRig(t, "greet")
	r.target.answerWith(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	worker := r.startWorker(map[string]string{"HANDLERS_FILE": r.handlersFileWith("{base: 1s, max: 1s}, max_retries: 1000", []string{"greet"})})
	h := r.rehearse("EventsTargetAway", worker)
	h.of(r.emit(slices.Repeat([]eventqueue.NewEvent{event("greet", `1`)}, 100)...)...)
	worker.await("what a handler calls is away")
	h.fires()
	h.says(h.run("Look"), "503")
	r.target.answerWith(nil)
	worker.await("what a handler calls is back")
	r.awaitSQL("all have completed", `SELECT count(*) = 0 FROM events_v2`)
	h.resolves()
}

func rehearseNotPublished(t *testing.T) {
	r, proxy := behindProxy(t)
	worker := r.startWorker(map[string]string{"API_LISTEN": "127.0.0.1:0", "PUBLISH_TIMEOUT": "1s"})
	h := r.rehearse("EventsNotPublished", worker)
	emit := func() {
		answer, err := http.Post(worker.site(t)+"/v1/events", "application/json",
			strings.NewReader(fmt.Sprintf(`{"canvas_id":%q,"module":"WORKER","name":"greet","value":4}`, canvas)))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	proxy.Refuse.Store(true)
	proxy.Break()
	h.fires(emit)
	worker.await("could not publish notifications")
	testenv.Eventually(t, "/readyz names the cause", func() bool {
		status, text := worker.page("/readyz")
		return status == http.StatusOK && strings.Contains(text, "Pub/Sub cannot be used")
	})
	proxy.Refuse.Store(false)
	h.resolves(emit)
	worker.await("notifications are published again")
	r.awaitSQL("all have completed", `SELECT count(*) = 0 FROM events_v2`)
}

// The worker pulls from a subscription of another topic.
func rehearseNotificationsLost(t *testing.T) {
	r := newRig(t, "greet")
	cron := r.startCron(map[string]string{"RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "1s"})
	h := r.rehearse("EventsNotificationsLost", cron)
	r.startWorker(map[string]string{"PUBSUB_TOPIC": "another", "PUBSUB_SUBSCRIPTION": r.environment["PUBSUB_SUBSCRIPTION"] + "-of-another"})
	r.emit(slices.Repeat([]eventqueue.NewEvent{event("greet", `1`)}, 100)...)
	h.fires(func() { r.emit(event("greet", `1`)) })
	h.says(h.run("Look"), "live")
	r.startWorker(nil)
	r.awaitSQL("all have completed", `SELECT count(*) = 0 FROM events_v2`)
	h.resolves()
}

func rehearseLocksLost(t *testing.T) {
	r := newPostgresRig(t, "greet")
	let := make(chan struct{})
	r.target.holdUntil(let)
	settings := map[string]string{"LOCK_TIMEOUT": "3s"}
	killed := r.startWorker(settings)
	r.startCron(settings)
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	killed.Kill()
	close(let)
	h := r.rehearse("EventsLocksLost", r.startWorker(settings))
	h.fires()
	h.says(h.run("Look"), "dead", "live")
	r.awaitSQL("it has completed", `SELECT count(*) = 0 FROM events_v2`)
	h.resolves()
}

// The table is locked again and again, so that a statement takes longer than it otherwise would, on any machine.
func rehearsePoolExhausted(t *testing.T) {
	r := newPostgresRig(t, "greet")
	r.emit(event("greet", `1`))
	cron := r.startCron(map[string]string{"API_LISTEN": "127.0.0.1:0", "DATABASE_MAX_CONNS": "2"})
	h := r.rehearse("EventsPoolExhausted", cron)
	ctx, end := context.WithCancel(testenv.Context(t))
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer end()
	crowd.Go(func() {
		for ctx.Err() == nil {
			_, err := r.pool.Exec(ctx, `DO $$ BEGIN LOCK TABLE events_v2; PERFORM pg_sleep(0.2); END $$`)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				pageAt(t, cron.site(t)+"/v1/events?limit=1")
			}
		})
	}
	h.fires()
	h.says(h.run("Look"), "application_name")
	end()
	h.resolves()
}

func rehearseGrow(t *testing.T) {
	r := newPostgresRig(t, "greet")
	r.emit(event("greet", `1`))
	cron := r.startCron(nil)
	h := r.rehearse("EventsGrow", cron)
	hourAgo := fmt.Sprintf("eventsv2_events_pending offset %dms > 0", time.Hour.Milliseconds()/faster)
	testenv.Eventually(t, "little has waited for an hour", func() bool { return h.hasData(hourAgo) })
	if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
		SELECT $1, 'WORKER', 'greet', '_', '1', now() FROM generate_series(1, 101000)`, [16]byte(canvas)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pool.Exec(testenv.Context(t), `ANALYZE events_v2`); err != nil { // as autovacuum does within a minute
		t.Fatal(err)
	}
	cron = h.countedAnew(cron)
	h.fires()
	h.says(h.run("Look"), "greet")
	h.of(1, 2)
	h.run("Do")
	if _, err := r.pool.Exec(testenv.Context(t), `DELETE FROM events_v2 WHERE id > 2`); err != nil {
		t.Fatal(err)
	}
	r.emit(event("greet", `1`))
	h.countedAnew(cron)
	h.resolves()
}
