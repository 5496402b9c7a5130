package e2e_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

var operationID = regexp.MustCompile(`operation ([0-9a-f-]{36})`)

// exec runs a statement.
func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), sql, args...); err != nil {
		r.t.Fatal(err)
	}
}

// TestEventsAreReplayed has a worker run what it has run before, once more: with the values and the attributes, and under new ids
// that say what they repeat. Without a history there is an error that says what to set.
func TestEventsAreReplayed(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	forgets := r.start("worker", nil)
	forgets.await("worker started")
	r.emit(event("greet", `0`))
	r.target.await(t, 1)
	r.awaitSQL("it has completed", `SELECT count(*) = 0 FROM events_v2`)
	r.operating(2, "RETAIN_HISTORY=true", "replay", "--name", "greet", "--dry-run")
	forgets.terminate()

	r.start("worker", map[string]string{"RETAIN_HISTORY": "true"}).await("worker started")
	events := []eventqueue.NewEvent{event("greet", `{"n":  1}`), event("greet", `2`), event("greet", `3`)}
	for i := range events {
		events[i].Attributes, events[i].UniqueKey, events[i].OrderingKey = map[string]string{"source": "shop"}, fmt.Sprint("unique", i), "order"
	}
	ids := r.emit(events...)
	r.awaitSQL("the history has them", `SELECT count(*) = 3 FROM event_log`)
	r.operating(2, "name: is empty", "replay", "--name", "", "--yes")
	r.operating(2, "--dry-run", "replay", "--name", "greet")
	if said := r.eventctlSays("replay", "--name", "greet", "--attribute", "source=shop", "--rate", "1/s", "--dry-run"); said != "would replay 3 events, within 2s\n" {
		t.Errorf("the dry run says %q", said)
	}
	if said := r.eventctlSays("replay", "--name", "greet", "--attribute", "source=shop", "--yes"); !strings.HasSuffix(said, "\nreplayed 3 events\n") {
		t.Errorf("the replay says %q", said)
	}
	requests := r.target.await(t, 7)
	r.awaitSQL("the history has six", `SELECT count(*) = 6 FROM event_log`)
	for i, want := range []string{`{"n":  1}`, `2`, `3`} {
		if got := requests[4+i].body; got != want {
			t.Errorf("request %d has the value %s, want %s", i, got, want)
		}
	}
	again := one[int64](r, `SELECT id FROM event_log WHERE attributes ->> 'replayed_from' = $1::text AND attributes ->> 'source' = 'shop'`, ids[0].String())
	for _, command := range []string{"show", "tree", "explain"} {
		if said := r.eventctlSays(command, fmt.Sprint(again)); !regexp.MustCompile(`replayed[\s_]+from[\s:]+` + ids[0].String() + `|repeats event ` + ids[0].String()).MatchString(said) {
			t.Errorf("%s does not say what the event repeats: %s", command, said)
		}
	}
	r.eventctl("emit", "--canvas", canvas.String(), "--module", "WORKER", "--name", "greet", "--value", "4", "--unique-key", "unique0") // a replay reserves no key
	r.target.await(t, 8)
}

// TestKilledReplayContinues kills eventctl within a replay, and has another one go on: each event is replayed once.
func TestKilledReplayContinues(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	const n = 150
	r.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		SELECT nextval('events_id_seq'), $1, 'WORKER', 'greet', '_', '1', 'COMPLETED', 0, 1, now() FROM generate_series(1, $2::int)`, [16]byte(canvas), n)
	killed := r.start("eventctl", nil, "replay", "--name", "greet", "--rate", "20/s", "--yes")
	r.awaitSQL("it has begun", `SELECT count(*) > 0 FROM events_v2`)
	killed.Kill()
	killed.wait()
	found := operationID.FindStringSubmatch(killed.text())
	if found == nil {
		t.Fatalf("it has not named its operation: %s", killed.text())
	}
	r.exec(`UPDATE bulk_operations SET leased_until = now() WHERE state = 'running'`) // as if it were half a minute later
	if said := r.eventctlSays("replay", "--resume", found[1]); !strings.HasSuffix(said, "\nreplayed 150 events\n") {
		t.Errorf("it says %q", said)
	}
	if got := one[int](r, `SELECT count(DISTINCT attributes ->> 'replayed_from') FROM events_v2`); got != n || one[int](r, `SELECT count(*) FROM events_v2`) != n {
		t.Errorf("%d events were replayed, want each of %d once", got, n)
	}
	r.operating(0, "", "replay", "--resume", found[1]) // twice is as once
	if got := one[int](r, `SELECT count(*) FROM events_v2`); got != n {
		t.Errorf("%d events, want %d", got, n)
	}
	r.operating(3, "there is no operation", "replay", "--resume", "6f1e5bd4-3a56-4a0c-9c2e-6f3b1d0c7a11")
	r.operating(2, "exclude each other", "replay", "--resume", found[1], "--name", "greet")
}

// TestInterruptedReplayStops: an interrupt stops it, and says how to go on.
func TestInterruptedReplayStops(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "greet")
	r.exec(`INSERT INTO event_log (id, canvas_id, module, name, modifier, value, status, retries, attempts, enqueued_at)
		SELECT nextval('events_id_seq'), $1, 'WORKER', 'greet', '_', '1', 'COMPLETED', 0, 1, now() FROM generate_series(1, 1000)`, [16]byte(canvas))
	p := r.start("eventctl", nil, "replay", "--name", "greet", "--rate", "2/s", "--yes")
	r.awaitSQL("it has begun", `SELECT count(*) > 0 FROM events_v2`)
	if status := p.terminate(); status != 1 || !strings.Contains(p.text(), "to go on: eventctl replay --resume ") {
		t.Errorf("it ended with %d: %s", status, p.text())
	}
	if got := one[string](r, `SELECT state FROM bulk_operations`); got != "stopped" {
		t.Errorf("the operation is %s", got)
	}
}
