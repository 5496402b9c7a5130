package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/propagation"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

func TestWorkerPostsEveryEventOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	worker := r.start("worker", map[string]string{"RETAIN_HISTORY": "true", "LOG_LEVEL": "info", "LOG_EVENTS": "all"})
	events := make([]eventqueue.NewEvent, 500)
	for i := range events {
		events[i] = event("greet", `{ "odd":   "spacing ü", "big": 1e400 }`)
	}
	ids := r.emit(events...)
	requests := r.target.await(t, len(events))
	r.awaitSQL("every event has ended", `SELECT count(*) = $1 FROM event_log WHERE status = 'COMPLETED'`, len(ids))
	seen := map[string]bool{}
	for _, request := range requests {
		if seen[request.id] {
			t.Errorf("event %s came twice", request.id)
		}
		seen[request.id] = true
		if request.body != string(events[0].Value) {
			t.Errorf("event %s came as %s", request.id, request.body)
		}
		if request.header.Get("Ce-Specversion") != "1.0" || request.header.Get("Content-Type") != "application/json" {
			t.Errorf("the headers are %v", request.header)
		}
	}
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	checkGoogleLog(t, worker.text())
}

// checkGoogleLog reads every line as Google Cloud Logging would.
func checkGoogleLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var entry struct{ Severity, Time, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Severity == "" || entry.Time == "" || entry.Message == "" {
			t.Errorf("not a log entry: %s", line)
		}
	}
}

func TestTargetAnswersBecomeOutcomes(t *testing.T) {
	t.Parallel()
	r := newRig(t, "flaky", "bad", "busy")
	var flaky, busy atomic.Int32
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.URL.Path == "/flaky" && flaky.Add(1) <= 2:
			w.WriteHeader(http.StatusInternalServerError)
		case request.URL.Path == "/bad":
			http.Error(w, "no such customer", http.StatusUnprocessableEntity)
		case request.URL.Path == "/busy" && busy.Add(1) == 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	worker := r.start("worker", map[string]string{"RETAIN_HISTORY": "true", "LOG_LEVEL": "info"})
	r.emit(event("flaky", `1`), event("bad", `2`), event("busy", `3`))
	r.awaitSQL("all three have ended", `SELECT count(*) = 3 FROM event_log`)
	for name, want := range map[string]string{
		"flaky": "COMPLETED retries=2",
		"bad":   "FAILED retries=0",
		"busy":  "COMPLETED retries=0",
	} {
		if got := one[string](r, `SELECT status || ' retries=' || retries FROM event_log WHERE name = $1`, name); got != want {
			t.Errorf("%s ended as %s, want %s", name, got, want)
		}
	}
	if got := one[string](r, `SELECT last_error FROM event_log WHERE name = 'bad'`); !strings.Contains(got, "422") || !strings.Contains(got, "no such customer") {
		t.Errorf("last_error is %q", got)
	}
	if status := worker.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	checkLinesOfRuns(t, worker.text())
}

// checkLinesOfRuns reads what an operator sees of three events with six runs, of which two were
// tried again, one failed its event, and three have no line but in the sums.
func checkLinesOfRuns(t *testing.T, log string) {
	t.Helper()
	lines, sums := map[string]int{}, [3]int{}
	for line := range strings.Lines(log) {
		var entry struct {
			Severity, Message    string
			Run, Failed, Retried int
			Handler              string
			Labels               map[string]string `json:"logging.googleapis.com/labels"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(entry.Message, "event run ") {
			lines[entry.Severity+" "+entry.Handler]++
			if entry.Labels["handler"] != entry.Handler || entry.Labels["event_id"] == "" {
				t.Errorf("the labels are not the event's: %s", line)
			}
		}
		sums[0], sums[1], sums[2] = sums[0]+entry.Run, sums[1]+entry.Failed, sums[2]+entry.Retried
	}
	if len(lines) != 2 || lines["WARNING WORKER/flaky/_"] != 2 || lines["ERROR WORKER/bad/_"] != 1 {
		t.Errorf("runs have the lines %v", lines)
	}
	if sums != [3]int{6, 1, 2} {
		t.Errorf("the sums are %v runs, failed and retried", sums)
	}
}

// TestSIGTERMReturnsUnstartedEvents has the target hold every request until the worker
// has gone, and a second worker complete what the first one gave back.
func TestSIGTERMReturnsUnstartedEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, "slow")
	let := make(chan struct{})
	r.target.holdUntil(let)
	first := r.start("worker", map[string]string{"WORKER_GRACE_PERIOD": "100ms"})
	events := make([]eventqueue.NewEvent, 20)
	for i := range events {
		events[i] = event("slow", `1`)
	}
	r.emit(events...)
	r.target.await(t, len(events))
	if status := first.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE locked_at IS NULL AND retries = 0`); n != len(events) {
		t.Errorf("%d of %d events went back unharmed", n, len(events))
	}
	close(let)
	r.start("worker", nil)
	r.awaitSQL("the second worker has completed them", `SELECT count(*) = 0 FROM events_v2`)
}

// TestEventsOfAKilledWorkerAreTakenOver kills a worker while it holds events.
func TestEventsOfAKilledWorkerAreTakenOver(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newRig(t, "slow")
	let := make(chan struct{})
	r.target.holdUntil(let)
	short := map[string]string{"LOCK_TIMEOUT": "2s", "RETAIN_HISTORY": "true"}
	first := r.start("worker", short)
	events := make([]eventqueue.NewEvent, 20)
	for i := range events {
		events[i] = event("slow", `1`)
	}
	r.emit(events...)
	r.target.await(t, len(events))
	first.Kill()
	first.wait()
	close(let)
	r.start("worker", short)
	// The emulator shows the notifications again when their lease has ended, the
	// relay sooner.
	r.start("cron", map[string]string{"LOCK_TIMEOUT": "2s", "RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "2s"})
	r.awaitSQL("they are completed", `SELECT count(*) = 0 FROM events_v2`)
	if n := one[int](r, `SELECT count(*) FROM event_log WHERE status = 'COMPLETED' AND attempts > 1 AND retries <= attempts - 1`); n != len(events) {
		t.Errorf("%d of %d events were taken over", n, len(events))
	}
}

func TestHealthEndpointsAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	worker := r.start("worker", nil)
	worker.await("worker started")
	port := regexp.MustCompile(`"address":"[^"]*:(\d+)"`).FindStringSubmatch(worker.text())[1]
	if status, err := get(t, "http://127.0.0.1:"+port+"/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("/healthz answers %d, %v", status, err)
	}
	worker.awaitReady()
	other := r.start("worker", map[string]string{"PORT": port})
	if status := other.wait(); status != 1 || !strings.Contains(other.text(), "PORT "+port) {
		t.Errorf("a second worker on the port ended with %d: %s", status, other.text())
	}
}

// TestInvalidWorkerConfigIsRefused lists what can be wrong, and what the error has to
// say.
func TestInvalidWorkerConfigIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("handlers:\n  - module: M\n    nam: n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change map[string]string
		args   []string
		want   string
	}{
		"no database":        {change: map[string]string{"DATABASE_URL": ""}, want: "DATABASE_URL is not set"},
		"no schema":          {change: map[string]string{"DATABASE_URL": testenv.EmptyDatabaseURL(t)}, want: "eventctl migrate up"},
		"no handlers file":   {change: map[string]string{"HANDLERS_FILE": ""}, want: "HANDLERS_FILE is not set"},
		"bad handlers file":  {change: map[string]string{"HANDLERS_FILE": bad}, want: "bad.yaml:3"},
		"check":              {change: map[string]string{"DATABASE_URL": ""}, args: []string{"check", bad}, want: "bad.yaml:3"},
		"bad duration":       {change: map[string]string{"LOCK_TIMEOUT": "soon"}, want: "LOCK_TIMEOUT"},
		"negative number":    {change: map[string]string{"WORKER_CONCURRENCY": "-1"}, want: "WORKER_CONCURRENCY is -1"},
		"bad level":          {change: map[string]string{"LOG_LEVEL": "loud"}, want: "LOG_LEVEL"},
		"bad events":         {change: map[string]string{"LOG_EVENTS": "some"}, want: "LOG_EVENTS"},
		"heartbeat too slow": {change: map[string]string{"WORKER_HEARTBEAT": "10m"}, want: "Heartbeat is 10m0s"},
		"unknown flag":       {args: []string{"--fast"}, want: "unknown flag: --fast"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *r
			own.t = t
			worker := own.start("worker", c.change, c.args...)
			if status := worker.wait(); status != 1 {
				t.Errorf("the exit status is %d, want 1", status)
			}
			if !strings.Contains(worker.text(), c.want) {
				t.Errorf("the message lacks %q:\n%s", c.want, worker.text())
			}
			if regexp.MustCompile(`:[^@ ]*@127`).MatchString(worker.text()) {
				t.Errorf("the message shows a password:\n%s", worker.text())
			}
		})
	}
}

// TestTraceReachesTheTarget follows a trace context from the emitter to the target.
func TestTraceReachesTheTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	r.start("worker", nil)
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	ctx := propagation.TraceContext{}.Extract(testenv.Context(t), propagation.MapCarrier{
		"traceparent": "00-" + traceID + "-00f067aa0ba902b7-01"})
	if _, err := r.queue.Emit(ctx, event("greet", `1`)); err != nil {
		t.Fatal(err)
	}
	header := r.target.await(t, 1)[0].header
	if !strings.Contains(header.Get("Traceparent"), traceID) || !strings.Contains(header.Get("Ce-Traceparent"), traceID) {
		t.Errorf("the headers are %v", header)
	}
}
