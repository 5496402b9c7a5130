package httptarget_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

const answeringFile = `
handlers:
  - {module: WORKER, name: greet, modifier: _, url: "%s/greet", answer: cloudevents, max_retries: 1, backoff: {base: 1ms, max: 1ms}}
  - {module: order, name: shipped, modifier: _, url: "%s/shipped"}
`

func shipped(members string) string {
	return `{"specversion": "1.0", "id": "1", "source": "/shop", "type": "order.shipped"` + members + `}`
}

// TestEventsOfAnAnswerAreEmittedWithTheCompletion, once, as children of the event.
func TestEventsOfAnAnswerAreEmittedWithTheCompletion(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	server := newPosts(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/greet" {
			w.Header().Set("Content-Type", "application/cloudevents-batch+json")
			_, _ = io.WriteString(w, `[`+shipped(`, "data": {"n":  1.0}, "user": "bob"`)+`, `+shipped(`, "data": 2`)+`]`)
		}
	})
	server.register(r, answeringFile)
	event := r.Event(`1`)
	event.Attributes = map[string]string{"user": "ada", "source": "test"}
	id := r.Emit(event)[0]
	r.Start(worker.Config{RetainHistory: true})
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 3)
	users := map[string]int{}
	for range 3 {
		h := server.next(t)
		if h.Get("Path") == "/greet" {
			continue
		}
		users[h.Get("Ce-User")]++
		if h.Get("Ce-Parentid") != id.String() || h.Get("Ce-Attrsource") != "test" || h.Get("Ce-Subject") != "order/shipped/_" {
			t.Errorf("a child has the header %v", h)
		}
	}
	if users["ada"] != 1 || users["bob"] != 1 {
		t.Errorf("the users are %v", users)
	}
	if n := rig.One[int](r, `SELECT count(*) FROM event_log WHERE parent_id = $1 AND value IN ('{"n":  1.0}', '2')`, id); n != 2 {
		t.Errorf("%d children have their data, byte for byte", n)
	}
	if waiting, completed := r.Waiting(), r.Logged("COMPLETED"); waiting != 0 || completed != 3 {
		t.Errorf("%d events wait and %d have completed", waiting, completed)
	}
}

// TestAnswerIsEmittedAsAWholeOrNotAtAll: one event that the queue refuses is a failed attempt, and the first one is not emitted either.
func TestAnswerIsEmittedAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	server := newPosts(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/cloudevents-batch+json")
		_, _ = io.WriteString(w, `[`+shipped(`, "data": 1`)+`, `+shipped(`, "data": "\u0000"`)+`]`)
	})
	server.register(r, answeringFile)
	id := r.Emit(r.Event(`1`))[0]
	r.Start(worker.Config{})
	r.Outcomes.Await(t, machine.RetryTooMany, 1)
	if n := rig.One[int](r, `SELECT count(*) FROM event_attempts WHERE event_id = $1`, id); n != 2 || r.Waiting() != 0 || r.Logged("FAILED") != 1 {
		t.Errorf("%d attempts have failed, %d events wait, %d are FAILED", n, r.Waiting(), r.Logged("FAILED"))
	}
	text := rig.One[string](r, `SELECT coalesce(max(last_error), '') FROM event_log WHERE id = $1`, id)
	if !strings.Contains(text, "200 OK, but the events of the answer cannot be emitted: event 1: value: ") {
		t.Errorf("the error is %q", text)
	}
}
