package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// handlerCounts are the counts of one handler in eventctl stats --since.
type handlerCounts struct {
	Canvas    string   `json:"canvas_id"`
	Name      string   `json:"name"`
	Emitted   int64    `json:"emitted"`
	Completed int64    `json:"completed"`
	Failed    int64    `json:"failed"`
	Retried   int64    `json:"retried"`
	WaitP99   *float64 `json:"wait_p99_seconds"`
	RunP50    *float64 `json:"run_p50_seconds"`
	Pending   *int64   `json:"pending"`
}

// counts runs a command of eventctl that shows counts, by name.
func (r *rig) counts(arguments ...string) map[string]handlerCounts {
	r.t.Helper()
	text, err := r.command("eventctl", append(arguments, "--json")...).Output()
	var doc struct{ Items []handlerCounts }
	if err = errors.Join(err, json.Unmarshal(text, &doc)); err != nil {
		r.t.Fatalf("eventctl %v: %v: %s", arguments, err, text)
	}
	byName := map[string]handlerCounts{}
	for _, h := range doc.Items {
		byName[h.Name] = h
	}
	return byName
}

// TestStatsShowWhatProgramsHaveCounted: two workers run a hundred events, some of which fail, and
// when they have stopped the counts are the truth.
func TestStatsShowWhatProgramsHaveCounted(t *testing.T) {
	t.Parallel()
	onEachNotifier(t, (*rig).testCounts, "greet", "fail")
}

func (r *rig) testCounts() {
	t := r.t
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/fail" {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	workers := []*program{r.start("worker", nil), r.start("worker", nil)}
	for _, w := range workers {
		w.await("worker started")
	}
	var events []eventqueue.NewEvent
	for range 80 {
		events = append(events, event("greet", `1`))
	}
	for range 20 {
		events = append(events, event("fail", `1`))
	}
	r.emit(events...)
	r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
	for _, w := range workers {
		w.terminate()
	}
	if err := r.queue.Close(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	failed := one[int64](r, `SELECT count(*) FROM event_log WHERE status = 'FAILED'`)
	retried := one[int64](r, `SELECT count(*) FROM event_attempts`) - failed
	for _, command := range [][]string{{"stats", "--since", "1h"}, {"top"}, {"stats", "--since", "100h"}} {
		got := r.counts(command...)
		if greet := got["greet"]; greet.Emitted != 80 || greet.Completed != 80 || greet.Failed != 0 || greet.Retried != 0 || greet.WaitP99 == nil || greet.RunP50 == nil {
			t.Errorf("eventctl %v: greet has %+v", command, greet)
		}
		if fail := got["fail"]; fail.Emitted != 20 || fail.Completed != 0 || fail.Failed != failed || fail.Failed != 20 || fail.Retried != retried {
			t.Errorf("eventctl %v: fail has %+v; %d have failed, %d runs were retried", command, fail, failed, retried)
		}
	}
}

// TestKilledWorkerLosesOnlyItsOwnCounts: what it had not handed in yet, and no event; those of others, of
// who emits and of later workers stay true.
func TestKilledWorkerLosesOnlyItsOwnCounts(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet") // Pub/Sub may hand a notification to the pull of the killed worker
	runs := func(events int) *program {
		w := r.start("worker", nil)
		w.await("worker started")
		for range events {
			r.emit(event("greet", `1`))
		}
		r.awaitSQL("all events have ended", `SELECT count(*) = 0 FROM events_v2`)
		return w
	}
	killed := runs(3)
	killed.Kill()
	killed.wait()
	runs(4).terminate()
	if err := r.queue.Close(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	if n := len(r.target.await(t, 7)); n != 7 {
		t.Errorf("%d runs of 7 events", n)
	}
	// Within a minute of its start a worker has handed in nothing; on a slow machine, perhaps all.
	if greet := r.counts("stats", "--since", "1h")["greet"]; greet.Emitted != 7 || greet.Completed < 4 || greet.Completed > 7 || greet.Failed != 0 {
		t.Errorf("greet has %+v, want 7 emitted and 4 to 7 completed", greet)
	}
}
