package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"eventsv2/test/testenv"
)

const queueFills = "ready, but the queue of notifications of the Postgres server fills up, and events are found by polling"

// leaveOutWakeUps has wake-ups left out on the connections that are made from now on, as if the queue of the server were half
// full: to fill it takes 4 GB. restore undoes it.
func (r *rig) leaveOutWakeUps() (restore func()) {
	r.t.Helper()
	database := pgx.Identifier{r.pool.Config().ConnConfig.Database}.Sanitize()
	run := func(sql string) {
		r.t.Helper()
		if _, err := r.pool.Exec(testenv.Context(r.t), sql); err != nil {
			r.t.Fatal(err)
		}
		r.pool.Reset()
	}
	run(`ALTER DATABASE ` + database + ` SET events_v2.notify_limit = '0'`)
	return func() { r.t.Helper(); run(`ALTER DATABASE ` + database + ` RESET events_v2.notify_limit`) }
}

// TestFullNotifyQueueStopsNothing (I2, I13): nothing is notified while the queue of the server fills up, so that no transaction fails for it. Events
// of every form run nevertheless, and log and readiness say why they are found by polling.
func TestFullNotifyQueueStopsNothing(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, func(r *rig) {
		testenv.Promised(r.t, promisedHearing)
		r.leaveOutWakeUps()
		r.target.failOnce("flaky")
		worker := r.start("worker", map[string]string{"RETAIN_HISTORY": "true"})
		cron := r.start("cron", nil)
		worker.await("worker started")
		cron.await("cron started")
		listener, err := pgx.Connect(testenv.Context(r.t), r.environment["DATABASE_URL"])
		if err != nil {
			r.t.Fatal(err)
		}
		defer func() { _ = listener.Close(testenv.Context(r.t)) }()
		if _, err := listener.Exec(testenv.Context(r.t), `LISTEN events_v2_pending; LISTEN events_v2_notifications; LISTEN events_v2_unpublished; LISTEN over`); err != nil {
			r.t.Fatal(err)
		}
		count := r.emitInEveryForm()
		r.awaitSQL("all events have completed", `SELECT count(*) = $1 FROM event_log WHERE status = 'COMPLETED'`, count)
		cron.await("the queue of notifications of the Postgres server fills up: end the session that holds it up")
		testenv.Eventually(r.t, "cron says so", func() bool {
			status, text := cron.page("/readyz")
			return status == http.StatusOK && strings.HasPrefix(text, queueFills)
		})
		if _, err := r.pool.Exec(testenv.Context(r.t), `NOTIFY over`); err != nil {
			r.t.Fatal(err)
		}
		if n, err := listener.WaitForNotification(testenv.Context(r.t)); err != nil || n.Channel != "over" {
			r.t.Errorf("%v was notified: %v", n, err)
		}
	}, "greet", "flaky")
}

func rehearseWakeUpsLeftOut(t *testing.T) {
	r := newRig(t, "greet")
	restore := r.leaveOutWakeUps()
	cron := r.startCron(nil)
	h := r.rehearse("EventsWakeUpsLeftOut", cron)
	holder, err := pgx.Connect(testenv.Context(t), r.environment["DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`LISTEN something`, `BEGIN`} {
		if _, err := holder.Exec(testenv.Context(t), sql); err != nil {
			t.Fatal(err)
		}
	}
	h.fires()
	cron.await("the queue of notifications of the Postgres server fills up")
	h.run("Look")
	h.words["4711"] = fmt.Sprint(holder.PgConn().PID())
	h.run("Do")
	restore()
	h.countedAnew(cron) // its connections have the setting that stands for a full queue
	h.resolves()
}
