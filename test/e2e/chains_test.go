package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// TestChainsNeedNoGo: the worker as deployed gives an event to the targets of its key and of its parent, of which one fails and is
// retried alone, and one is paused alone; and what a target answers is emitted once, though its first answer was malformed.
func TestChainsNeedNoGo(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	path := r.handle(`handlers:
  - {event: order.placed, name: mail, url: "URL/mail", backoff: {base: 100ms, max: 1s}}
  - {event: order.placed, name: stock, url: "URL/stock"}
  - {event: order, name: audit, url: "URL/audit", backoff: {base: 100ms, max: 1s}, answer: cloudevents}
  - {module: WORKER, name: ship, modifier: _, url: "URL/ship"}
events: [order.cancelled]
`)
	if status, output := r.runWords([]string{"worker", "check", path}, ""); status != 0 || !strings.Contains(output, "ok, 4 handlers") {
		t.Errorf("worker check ended with %d:\n%s", status, output)
	}
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		first := request.Header.Get("Ce-Retries") == "0"
		ship := `{"specversion": "1.0", "id": "1", "source": "/audit", "type": "WORKER.ship", "data": {"of":  "` + request.Header.Get("Ce-Type") + `"}}`
		switch {
		case request.URL.Path == "/mail" && first:
			http.Error(w, "the mail server is down", http.StatusInternalServerError)
		case request.URL.Path == "/audit" && first:
			w.Header().Set("Content-Type", "application/cloudevents-batch+json")
			_, _ = io.WriteString(w, "["+ship+`, {"specversion": "1.0"}]`)
		case request.URL.Path == "/audit":
			w.Header().Set("Content-Type", "application/cloudevents+json")
			_, _ = io.WriteString(w, ship)
		}
	})
	r.eventctl("pause", "--canvas", canvas.String(), "--module", "order", "--name", "stock")
	placed := eventqueue.NewEvent{Canvas: canvas, Module: "order", Name: "placed", Modifier: "_", Value: []byte(`{"n":  1.0}`), Attributes: map[string]string{"user": "ada"}}
	cancelled := placed
	cancelled.Name = "cancelled"
	r.emit(placed, cancelled)
	r.start("worker", nil)
	r.awaitSQL("all but the paused have completed", `SELECT (SELECT count(*) FROM event_log WHERE status = 'COMPLETED') = 7 AND (SELECT count(*) FROM events_v2) = 1`)
	if waits := one[string](r, `SELECT module || '/' || name || '/' || modifier FROM events_v2`); waits != "order/stock/order.placed" {
		t.Errorf("%s is paused", waits)
	}
	r.eventctl("unpause", "--canvas", canvas.String(), "--module", "order", "--name", "stock")
	r.awaitSQL("the paused has completed", `SELECT count(*) = 8 FROM event_log WHERE status = 'COMPLETED'`)

	got := map[string]int{}
	for _, request := range r.target.await(t, 9) {
		got[request.name+" "+request.header.Get("Ce-Type")+" "+request.body]++
		if user := request.header.Get("Ce-User"); user != "ada" {
			t.Errorf("%s has the user %q", request.name, user)
		}
	}
	want := map[string]int{`mail order.placed {"n":  1.0}`: 2, `stock order.placed {"n":  1.0}`: 1, `audit order.placed {"n":  1.0}`: 2, `audit order.cancelled {"n":  1.0}`: 2,
		`ship WORKER.ship {"of":  "order.placed"}`: 1, `ship WORKER.ship {"of":  "order.cancelled"}`: 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the target got %v, want %v", got, want)
	}
	if n := one[int](r, `SELECT count(*) FROM event_log ship JOIN event_log audit ON audit.id = ship.parent_id JOIN event_log emitted ON emitted.id = audit.parent_id
		WHERE ship.name = 'ship' AND audit.name = 'audit' AND emitted.name IN ('placed', 'cancelled') AND emitted.parent_id IS NULL`); n != 2 {
		t.Errorf("%d shipments have their family, want 2", n)
	}
	for name, failed := range map[string]string{"mail": "500 Internal Server Error: the mail server is down", "audit": "200 OK, but the events of the answer cannot be emitted: event 1: id is missing"} {
		if n := one[int](r, `SELECT count(*) FROM event_attempts a JOIN event_log l ON l.id = a.event_id WHERE l.name = $1 AND a.error LIKE '%' || $2 || '%'`, name, failed); n == 0 {
			t.Errorf("no attempt of %s says %s", name, failed)
		}
	}
}

// TestChainsHaveEncryptedValues: what a handler of an event gets, and what its target answers, is in no table in the clear.
func TestChainsHaveEncryptedValues(t *testing.T) {
	t.Parallel()
	r := newPostgresRig(t, "open")
	r.handle(`handlers:
  - {event: order, name: audit, url: "URL/audit", answer: cloudevents}
  - {module: WORKER, name: ship, modifier: _, url: "URL/ship"}
`)
	keys, _ := keysetFile(t)
	r.environment["VALUE_KEYSET_FILE"] = keys
	value := `{"letter": "` + canary + `"}`
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/audit" {
			w.Header().Set("Content-Type", "application/cloudevents+json")
			_, _ = io.WriteString(w, `{"specversion": "1.0", "id": "1", "source": "/audit", "type": "WORKER.ship", "data": `+value+`}`)
		}
	})
	r.start("worker", nil)
	r.eventctl("emit", "--canvas", canvas.String(), "--module", "order", "--name", "_", "--value", value)
	r.awaitSQL("all three events have completed", `SELECT count(*) = 3 FROM event_log WHERE status = 'COMPLETED'`)
	for _, request := range r.target.await(t, 2) {
		if request.body != value {
			t.Errorf("%s got %s", request.name, request.body)
		}
	}
	if n := one[int](r, `SELECT count(*) FROM event_log WHERE value LIKE '%' || $1 || '%'`, canary); n != 0 {
		t.Errorf("%d events have their value in the clear", n)
	}
}

// TestAnswersOfAKilledWorkerAreEmittedOnce: the worker is killed when it has the answers and has written their events, and has not completed yet
// the events that were answered, as their rows are held.
func TestAnswersOfAKilledWorkerAreEmittedOnce(t *testing.T) {
	t.Parallel()
	const events = 5
	r := newPostgresRig(t, "open")
	path := r.handle(`handlers:
  - {event: order, name: audit, url: "URL/audit", answer: cloudevents}
  - {module: WORKER, name: ship, modifier: _, url: "URL/ship"}
`)
	let := make(chan struct{})
	r.target.answerWith(func(w http.ResponseWriter, request *http.Request) {
		select {
		case <-let:
		case <-request.Context().Done():
			return
		}
		if request.URL.Path == "/audit" {
			w.Header().Set("Content-Type", "application/cloudevents+json")
			_, _ = io.WriteString(w, `{"specversion": "1.0", "id": "1", "source": "/audit", "type": "WORKER.ship"}`)
		}
	})
	settings := map[string]string{"HANDLERS_FILE": path, "RETAIN_HISTORY": "true", "LOCK_TIMEOUT": "10s"}
	first := r.start("worker", settings)
	for range events {
		r.emit(eventqueue.NewEvent{Canvas: canvas, Module: "order", Name: "_", Modifier: "_", Value: []byte(`1`)})
	}
	r.target.await(t, events)
	ctx := testenv.Context(t)
	held, err := r.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback(ctx) }()
	if _, err := held.Exec(ctx, `SELECT FROM events_v2 WHERE name = 'audit' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	last := one[int](r, `SELECT last_value FROM events_id_seq`)
	close(let)
	r.awaitSQL("the answers are written", `SELECT last_value >= $1 FROM events_id_seq`, last+events)
	first.Kill()
	first.wait()
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE name = 'ship'`); n != 0 {
		t.Errorf("%d events of answers exist without the completion", n)
	}
	if err := held.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	r.start("worker", settings)
	r.start("cron", map[string]string{"LOCK_TIMEOUT": "10s", "RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "2s"})
	r.awaitSQL("all has completed", `SELECT (SELECT count(*) FROM event_log WHERE status = 'COMPLETED' AND name = 'audit') = $1 AND NOT EXISTS (SELECT FROM events_v2)`, events)
	if n, parents := one[int](r, `SELECT count(*) FROM event_log WHERE name = 'ship'`), one[int](r, `SELECT count(DISTINCT parent_id) FROM event_log WHERE name = 'ship'`); n != events || parents != events {
		t.Errorf("%d answers of %d events were emitted, want %d of %d", n, parents, events, events)
	}
	audits := 0
	for _, request := range r.target.await(t, 3*events) {
		if request.name == "audit" {
			audits++
		}
	}
	if audits < 2*events {
		t.Errorf("the target got %d requests of %d events, each of which it has to get again", audits, events)
	}
}
