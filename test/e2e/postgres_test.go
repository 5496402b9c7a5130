package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

// newPostgresRig makes a deployment without Pub/Sub: not one of its variables is
// set.
func newPostgresRig(t *testing.T, names ...string) *rig {
	t.Helper()
	ctx := testenv.Context(t)
	r := &rig{t: t, target: newTarget(t)}
	url := testenv.DatabaseURL(t)
	r.environment = map[string]string{
		"PATH":            os.Getenv("PATH"),
		"DATABASE_URL":    url,
		"NOTIFIER":        "postgres",
		"PORT":            "0",
		"HANDLERS_FILE":   r.handlersFile(names),
		"LOG_LEVEL":       "debug",
		"PUBLISH_TIMEOUT": publishTimeout.String(),
	}
	var err error
	if r.pool, err = pgxpool.New(ctx, url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.pool.Close)
	notifier, err := pgnotify.New(r.pool, pgnotify.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = notifier.Close() })
	r.store = pgstore.New(r.pool)
	r.queue = newQueue(t, r.store, notifier)
	return r
}

// eventctl runs the operator's program to its end.
func (r *rig) eventctl(args ...string) {
	r.t.Helper()
	if out, err := r.command("eventctl", args...).CombinedOutput(); err != nil {
		r.t.Fatalf("eventctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// failOnce has the target refuse each event of a handler the first time.
func (tg *target) failOnce(name string) {
	var failed sync.Map
	tg.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/"+name {
			return
		}
		if _, again := failed.LoadOrStore(request.Header.Get("Ce-Id"), true); !again {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
}

// emitInEveryForm emits events of the handlers greet and flaky, one of the latter,
// and returns how many.
func (r *rig) emitInEveryForm() int {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	if _, err := r.queue.Emit(ctx, event("greet", `"one"`)); err != nil {
		r.t.Fatal(err)
	}
	soon := event("greet", `"a little later"`)
	soon.Delay = 1200 * time.Millisecond
	r.emit(event("flaky", `"fails at first"`), soon)
	tx, err := r.pool.Begin(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.queue.EmitTx(ctx, tx, event("greet", `"in a transaction"`)); err != nil {
		r.t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.pool.Exec(ctx, `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'WORKER', 'greet', '_', '"by SQL"')`, [16]byte(canvas)); err != nil {
		r.t.Fatal(err)
	}
	emitArgs := []string{"emit", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet", "--value"}
	r.eventctl(append(emitArgs, `"by eventctl"`)...)
	r.eventctl(append(emitArgs, `"by eventctl, silently"`, "--no-notify")...)
	const lines = 1500
	file := filepath.Join(r.t.TempDir(), "events.ndjson")
	line := fmt.Sprintf(`{"canvas_id": %q, "module": "WORKER", "name": "greet", "modifier": "_", "value": "of a file"}`+"\n", canvas)
	if err := os.WriteFile(file, []byte(strings.Repeat(line, lines)), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.eventctl("emit", "--file", file)
	return 7 + lines
}

// TestProgramsWorkWithoutPubSub emits in every form there is, on a deployment that has
// nothing but Postgres.
func TestProgramsWorkWithoutPubSub(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet", "flaky")
	r.target.failOnce("flaky")
	worker := r.start("worker", map[string]string{"RETAIN_HISTORY": "true"})
	r.start("cron", map[string]string{"RELAY_INTERVAL": "1s"}).await("cron started")
	worker.await("worker started")
	count := r.emitInEveryForm()
	r.awaitSQL("all events have completed", `SELECT count(*) = $1 FROM event_log WHERE status = 'COMPLETED'`, count)
	if runs := len(r.target.await(t, count+1)); runs != count+1 {
		t.Errorf("%d requests came for %d events, one of which failed once", runs, count)
	}
	if got := one[int](r, `SELECT retries FROM event_log WHERE name = 'flaky'`); got != 1 {
		t.Errorf("the event that failed once has %d retries", got)
	}

	worker.awaitReady()
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	wrong := r.start("worker", map[string]string{"NOTIFIER": "kafka"})
	if status := wrong.wait(); status != 1 || !strings.Contains(wrong.text(), `NOTIFIER is "kafka"`) {
		t.Errorf("a worker with a wrong NOTIFIER ended with %d:\n%s", status, wrong.text())
	}
}

// TestKilledWorkerLosesNothingWithoutPubSub kills a worker that holds events
// which run, events that wait for their time, and their notifications, which
// nobody else knows of.
func TestKilledWorkerLosesNothingWithoutPubSub(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newPostgresRig(t, "slow")
	let := make(chan struct{})
	r.target.holdUntil(let)
	short := map[string]string{"LOCK_TIMEOUT": "2s", "RETAIN_HISTORY": "true"}
	first := r.start("worker", short)
	events := make([]eventqueue.NewEvent, 40)
	for i := range events {
		events[i] = event("slow", `1`)
		if i >= 20 {
			events[i].Delay = 3 * time.Second
		}
	}
	r.emit(events...)
	r.target.await(t, 20)
	r.awaitSQL("nobody but the worker knows of the notifications", `SELECT count(*) = 0 FROM events_v2_notifications`)
	first.Kill()
	first.wait()
	close(let)
	r.start("worker", short)
	r.start("cron", map[string]string{"LOCK_TIMEOUT": "2s", "RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "2s"})
	r.awaitSQL("they are completed", `SELECT count(*) = $1 FROM event_log WHERE status = 'COMPLETED'`, len(events))
	if n := one[int](r, `SELECT count(*) FROM event_log WHERE attempts > 1`); n != 20 {
		t.Errorf("%d events were taken over, want the 20 that ran", n)
	}
}
