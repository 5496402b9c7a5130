package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// TestWorkerRunsAsAJob drains a backlog in bounded runs. The target answers no
// request of the first one until as many have come as it may take: it ends by
// itself, and only when they have been answered.
func TestWorkerRunsAsAJob(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	onEachNotifier(t, (*rig).testBounds, "greet")
}

func (r *rig) testBounds() {
	t := r.t
	const all, first, second = 300, 120, 100
	let := make(chan struct{})
	r.target.holdUntil(let)
	events := make([]eventqueue.NewEvent, all)
	for i := range events {
		events[i] = event("greet", `1`)
	}
	r.emit(events...)

	// ended says how many have completed, and that the others wait as they were emitted.
	ended := func(want int) {
		t.Helper()
		got := one[string](r, `SELECT (SELECT count(*) FROM event_log WHERE status = 'COMPLETED' AND attempts = 1) || ' ended, '
			|| count(*) FILTER (WHERE attempts = 0 AND retries = 0 AND locked_at IS NULL) || ' of ' || count(*) || ' wait unharmed' FROM events_v2`)
		if text := fmt.Sprintf("%d ended, %d of %d wait unharmed", want, all-want, all-want); got != text {
			t.Errorf("%s; want %s", got, text)
		}
	}
	keep := map[string]string{"RETAIN_HISTORY": "true", "WORKER_GRACE_PERIOD": "0"}
	job := r.start("worker", keep, "--max-events", fmt.Sprint(first))
	r.target.await(t, first)
	r.awaitSQL("so many are claimed", `SELECT count(*) = $1 FROM events_v2 WHERE locked_at IS NOT NULL`, first)
	close(let)
	if status := job.wait(); status != 0 {
		t.Errorf("the first job ended with %d", status)
	}
	if text := job.text(); !strings.Contains(text, "maximum number of events") || !strings.Contains(text, "worker stopped") {
		t.Errorf("the log of the first job is:\n%s", text)
	}
	ended(first)
	if n := len(r.target.await(t, first)); n != first {
		t.Errorf("%d requests came, want %d", n, first)
	}

	// By the environment; the flag wins over it in the last run.
	keep["WORKER_MAX_EVENTS"] = fmt.Sprint(second)
	if status := r.start("worker", keep).wait(); status != 0 {
		t.Errorf("the second job ended with %d", status)
	}
	ended(first + second)

	// The last one finds fewer than it may take, and ends by its time: of as many
	// runs as it takes on a busy machine. Then it lets what runs finish.
	delete(keep, "WORKER_GRACE_PERIOD")
	for left := true; left; left = one[bool](r, `SELECT count(*) > 0 FROM events_v2`) {
		if status := r.start("worker", keep, "--max-events=1000", "--ttl=3s").wait(); status != 0 {
			t.Errorf("the last job ended with %d", status)
		}
	}
	ended(all)
	if n := len(r.target.await(t, all)); n != all {
		t.Errorf("%d requests came, want %d", n, all)
	}
}

func TestInvalidWorkerBoundsAreRefused(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	for _, c := range []struct{ variable, value, flag, want string }{
		{want: "--max-events is -1: it must not be negative; 0 is no bound", flag: "--max-events=-1"},
		{want: `invalid argument "many" for "--max-events"`, flag: "--max-events=many"},
		{want: "--ttl is -1s: it must not be negative; 0 is no bound", flag: "--ttl=-1s"},
		{want: `invalid argument "5" for "--ttl"`, flag: "--ttl=5"},
		{want: "WORKER_MAX_EVENTS is -3: it must not be negative; 0 is no bound", variable: "WORKER_MAX_EVENTS", value: "-3"},
		{want: "WORKER_TTL is -1m0s: it must be at least 0s", variable: "WORKER_TTL", value: "-1m"},
		{want: "WORKER_TTL: ", variable: "WORKER_TTL", value: "soon"},
	} {
		var args []string
		if c.flag != "" {
			args = append(args, c.flag)
		}
		p := r.start("worker", map[string]string{c.variable: c.value}, args...)
		if status := p.wait(); status != 1 || !strings.Contains(p.text(), c.want) {
			t.Errorf("%+v: the status is %d, the log:\n%s", c, status, p.text())
		}
	}
}
