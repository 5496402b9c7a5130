package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
)

// TestRepeatedDeliveryAddsNothing: later, at once, with several events, with an id
// that no key could hold.
func TestRepeatedDeliveryAddsNothing(t *testing.T) {
	t.Parallel()
	three := func(_ context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
		e := eventqueue.NewEvent{Module: "M", Name: "n", Modifier: "_", Value: r.Body, Canvas: eventqueue.CanvasID{9}}
		own := e
		own.UniqueKey = "own" // the caster's own key: its event is emitted once for all deliveries
		return []eventqueue.NewEvent{own, e, e}, nil
	}
	r := newRig(t, webhook.Config{Sources: []webhook.Source{source(three)}})
	want := 0
	for i, id := range []string{"a", "b\x01", "\xff", strings.Repeat("long", 1000), "a "} {
		want += 2
		if i == 0 {
			want++
		}
		for range 2 {
			if answer := r.post(http.Header{"X-Id": {id}}, []byte(`1`)); answer.Code != http.StatusOK {
				t.Errorf("%q: %d, %v", id, answer.Code, r.reasons())
			}
			if n := len(r.events()); n != want {
				t.Errorf("%q: %d events, want %d", id, n, want)
			}
		}
	}
	for _, e := range r.events() {
		if e.Canvas != canvas {
			t.Errorf("an event on canvas %s", e.Canvas)
		}
	}
	// Without an id, repeats are not recognised.
	r.post(nil, []byte(`1`))
	r.post(nil, []byte(`1`))
	if n := len(r.events()); n != want+4 {
		t.Errorf("%d events, want %d", n, want+4)
	}
}

// TestRepeatIsRecognizedPerSourceForItsTime: another source may use the same id.
func TestRepeatIsRecognizedPerSourceForItsTime(t *testing.T) {
	t.Parallel()
	for set, want := range map[time.Duration]time.Duration{0: 72 * time.Hour, time.Minute: time.Minute} {
		here, there := source(webhook.ToHandler(key)), source(webhook.ToHandler(key))
		there.Name = "there"
		r := newRig(t, webhook.Config{Sources: []webhook.Source{here, there}, RetainDelivery: set})
		for _, name := range []string{"hook", "there", "hook"} {
			request := httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/"+name, strings.NewReader(`1`))
			request.Header.Set("X-Id", "17")
			r.handler.ServeHTTP(httptest.NewRecorder(), request)
		}
		events := r.events()
		if len(events) != 2 || events[0].UniqueFor != want || events[1].UniqueFor != want {
			t.Errorf("kept for %s: %+v", set, events)
		}
	}
}

// TestEventsKeepTheirOrder, but for the one that has the key of the delivery, which
// is written first.
func TestEventsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, webhook.Config{Sources: []webhook.Source{source(func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) {
		var events []eventqueue.NewEvent
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			e := eventqueue.NewEvent{Module: "M", Name: name, Modifier: "_", Value: []byte(`1`)}
			if name < "c" {
				e.UniqueKey = name
			}
			events = append(events, e)
		}
		return events, nil
	})}})
	r.post(http.Header{"X-Id": {"a"}}, []byte(`1`))
	r.post(nil, []byte(`1`)) // without a delivery, the keys of a and b hold
	var got strings.Builder
	for _, e := range r.events() {
		got.WriteString(e.Name)
	}
	if got.String() != "cabdecde" {
		t.Errorf("the events are %s", &got)
	}
}

// TestKeysOfTheCastersOwnDoNotDeadlock: where no delivery has a key, the others are
// taken in one order, whatever order the events have.
func TestKeysOfTheCastersOwnDoNotDeadlock(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	queue, err := eventqueue.New(pgstore.New(pool), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, queue)
	const keys = 20
	handler, err := webhook.New(queue, webhook.Config{Sources: []webhook.Source{source(func(_ context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
		events := make([]eventqueue.NewEvent, keys)
		for i := range events {
			events[i] = eventqueue.NewEvent{Module: "M", Name: "n", Modifier: "_", Value: []byte(`1`), UniqueKey: fmt.Sprint("key ", i)}
		}
		if string(r.Body) == `"back"` {
			slices.Reverse(events)
		}
		return events, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				body := []string{`"forth"`, `"back"`}[i%2]
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/hook", strings.NewReader(body)))
				if answer.Code != http.StatusOK {
					t.Errorf("%s: %d", body, answer.Code)
				}
			})
		}
		wait.Wait()
		if _, err := pool.Exec(testenv.Context(t), `DELETE FROM events_v2; DELETE FROM unique_keys`); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConcurrentRepeatsEmitOnce, on Postgres, through two handlers: one event, and
// each answer is given after the commit.
func TestConcurrentRepeatsEmitOnce(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	verifier, err := webhook.GitHub("secret")
	if err != nil {
		t.Fatal(err)
	}
	var handlers []*webhook.Handler
	for range 2 {
		queue, err := eventqueue.New(pgstore.New(pool), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		closeAtEnd(t, queue)
		h, err := webhook.New(queue, webhook.Config{Sources: []webhook.Source{{Name: "hook", Verifier: verifier,
			Cast: func(ctx context.Context, r *webhook.Request) ([]eventqueue.NewEvent, error) {
				events, err := webhook.ToHandler(key)(ctx, r)
				return append(events, events...), err
			}}}})
		if err != nil {
			t.Fatal(err)
		}
		handlers = append(handlers, h)
	}
	var wait sync.WaitGroup
	const deliveries, times = 10, 8
	for n := range deliveries * times {
		body := fmt.Appendf(nil, `{"delivery": %d}`, n/times)
		wait.Go(func() {
			request := httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/hook", bytes.NewReader(body))
			request.Header = headers("X-Hub-Signature-256", "sha256="+hexSum("secret", string(body)),
				"X-GitHub-Delivery", fmt.Sprint(n/times), "X-GitHub-Event", "push")
			answer := httptest.NewRecorder()
			handlers[n%2].ServeHTTP(answer, request)
			var there int
			err := pool.QueryRow(testenv.Context(t), `SELECT count(*) FROM events_v2 WHERE value = $1`, string(body)).Scan(&there)
			if answer.Code != http.StatusOK || err != nil || there != 2 {
				t.Errorf("delivery %d: status %d with %d events, %v", n/times, answer.Code, there, err)
			}
		})
	}
	wait.Wait()
}

// TestNothingIsAcknowledgedThatIsNotCommitted: the database fails before or after,
// and the delivery comes again.
func TestNothingIsAcknowledgedThatIsNotCommitted(t *testing.T) {
	t.Parallel()
	r := newRig(t, webhook.Config{Sources: []webhook.Source{source(webhook.ToHandler(key))}})
	down := errors.New("the database is down")
	id := http.Header{"X-Id": {"a"}}
	r.store.fail(down, nil)
	r.refuses("down", http.StatusServiceUnavailable, id, []byte(`1`))
	r.store.fail(nil, down)
	if answer := r.post(id, []byte(`1`)); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("an unknown outcome is answered with %d", answer.Code)
	}
	r.store.fail(nil, nil)
	if answer := r.post(id, []byte(`1`)); answer.Code != http.StatusOK || len(r.events()) != 1 {
		t.Errorf("again: %d, %d events", answer.Code, len(r.events()))
	}
}
