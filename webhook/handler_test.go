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
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/lograte"
	"eventsv2/test/testenv"
	"eventsv2/webhook"
)

// trusting takes every request; the delivery is in X-Id.
var trusting = webhook.VerifierFunc(func(r *webhook.Request) (webhook.Verified, error) {
	return webhook.Verified{Delivery: r.Header.Get("X-Id"), Type: r.Header.Get("X-Type")}, nil
})

func source(cast webhook.Caster) webhook.Source {
	return webhook.Source{Name: "hook", Verifier: trusting, Cast: cast}
}

// TestTheSameDeliveryAddsNothing: later, at once, with several events, with an id
// that no key could hold.
func TestTheSameDeliveryAddsNothing(t *testing.T) {
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
			if n := len(r.store.Events()); n != want {
				t.Errorf("%q: %d events, want %d", id, n, want)
			}
		}
	}
	for _, e := range r.store.Events() {
		if e.Canvas != canvas {
			t.Errorf("an event on canvas %s", e.Canvas)
		}
	}
	// Without an id, repeats are not recognised.
	r.post(nil, []byte(`1`))
	r.post(nil, []byte(`1`))
	if n := len(r.store.Events()); n != want+4 {
		t.Errorf("%d events, want %d", n, want+4)
	}
}

// TestADeliveryIsRecognizedPerSourceAndForItsTime: another source may use the same id.
func TestADeliveryIsRecognizedPerSourceAndForItsTime(t *testing.T) {
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
		events := r.store.Events()
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
	for _, e := range r.store.Events() {
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

// TestTheSameDeliveryTwiceAtOnce, on Postgres, through two handlers: one event, and
// each answer is given after the commit.
func TestTheSameDeliveryTwiceAtOnce(t *testing.T) {
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
	broken := func(_ context.Context, op memstore.Op) error {
		if op == memstore.OpInsert {
			return errors.New("the database is down")
		}
		return nil
	}
	id := http.Header{"X-Id": {"a"}}
	r.store.Inject(memstore.Faults{Before: broken})
	r.refuses("down", http.StatusServiceUnavailable, id, []byte(`1`))
	r.store.Inject(memstore.Faults{After: broken})
	if answer := r.post(id, []byte(`1`)); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("an unknown outcome is answered with %d", answer.Code)
	}
	r.store.Inject(memstore.Faults{})
	if answer := r.post(id, []byte(`1`)); answer.Code != http.StatusOK || len(r.store.Events()) != 1 {
		t.Errorf("again: %d, %d events", answer.Code, len(r.store.Events()))
	}
}

func TestWhatACasterMakesOfIt(t *testing.T) {
	t.Parallel()
	one := webhook.ToHandler(key)
	for what, c := range map[string]struct {
		cast   webhook.Caster
		status int
		events int
	}{
		"an event":        {one, 200, 1},
		"nothing":         {func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) { return nil, nil }, 200, 0},
		"its type":        {webhook.ByType(map[string]webhook.Caster{"push": one}), 200, 1},
		"no type of ours": {webhook.ByType(map[string]webhook.Caster{"ping": one}), 200, 0},
		"unusable": {func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) {
			return nil, fmt.Errorf("%w: it is Monday", webhook.ErrUnusable)
		}, 400, 0},
		"an error": {func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) {
			return nil, errors.New("no luck")
		}, 500, 0},
		"a panic": {func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) { panic("on purpose") }, 500, 0},
		"a bad event": {func(context.Context, *webhook.Request) ([]eventqueue.NewEvent, error) {
			return []eventqueue.NewEvent{{Module: "M", Value: []byte(`1`)}}, nil
		}, 422, 0},
	} {
		r := newRig(t, webhook.Config{Sources: []webhook.Source{source(c.cast)}})
		header := headers("X-Id", "a", "X-Type", "push")
		if c.status >= 300 {
			r.refuses(what, c.status, header, []byte(`1`))
			continue
		}
		if answer := r.post(header, []byte(`1`)); answer.Code != c.status || len(r.store.Events()) != c.events {
			t.Errorf("%s: status %d, %d events; %v", what, answer.Code, len(r.store.Events()), r.reasons())
		}
	}
	r := newRig(t, webhook.Config{Sources: []webhook.Source{source(one)}})
	r.refuses("no JSON", http.StatusBadRequest, nil, []byte(`a=b`))
	r.refuses("JSON that no column takes", http.StatusUnprocessableEntity, nil, []byte(`"\u0000"`))
}

func TestTheCheckComesBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	var wait time.Duration
	var fails error
	asked := 0
	strict, waits := source(webhook.ToHandler(key)), source(webhook.ToHandler(key))
	strict.RefuseOverLimit, waits.Name = true, "waits"
	r := newRig(t, webhook.Config{
		Sources: []webhook.Source{strict, waits},
		Check: func(_ context.Context, c eventqueue.CanvasID) (time.Duration, error) {
			asked++
			if c != canvas {
				t.Errorf("asked about %s", c)
			}
			return wait, fails
		},
	})
	id := http.Header{"X-Id": {"a"}}
	for d, seconds := range map[time.Duration]string{1: "1", time.Second: "1", 90*time.Second + 1: "91"} {
		wait = d
		r.refuses(d.String(), http.StatusTooManyRequests, id, []byte(`1`))
		if got := r.post(id, []byte(`1`)).Header().Get("Retry-After"); got != seconds {
			t.Errorf("after %s: Retry-After %q, want %s", d, got, seconds)
		}
	}
	request := httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/waits", strings.NewReader(`1`))
	answer := httptest.NewRecorder()
	if r.handler.ServeHTTP(answer, request); answer.Code != http.StatusOK {
		t.Errorf("a source whose events wait: %d", answer.Code)
	}
	wait, fails = 0, errors.New("no luck")
	r.refuses("a check that fails", http.StatusServiceUnavailable, id, []byte(`1`))
	fails = nil
	r.accepts("a check that lets it pass", id, []byte(`1`))
	if asked != 8 {
		t.Errorf("asked %d times, want 8", asked)
	}
}

func TestWhoIsServed(t *testing.T) {
	t.Parallel()
	other := eventqueue.CanvasID{0xca, 15: 2}
	named := func(name string, canvas eventqueue.CanvasID, says string) webhook.Source {
		return webhook.Source{Name: name, Canvas: canvas, Verifier: trusting,
			Cast: webhook.ToHandler(eventqueue.HandlerKey{Module: "M", Name: says, Modifier: "_"})}
	}
	r := newRig(t, webhook.Config{Sources: []webhook.Source{named("both", eventqueue.CanvasID{}, "all"), named("both", other, "own"), named("one", other, "one")}})
	for path, want := range map[string]string{
		"POST /webhooks/" + canvas.String() + "/both":              "all",
		"POST /webhooks/" + other.String() + "/both":               "own",
		"POST /webhooks/" + other.String() + "/one":                "one",
		"POST /webhooks/" + canvas.String() + "/one":               "404",
		"POST /webhooks/" + canvas.String() + "/two":               "404",
		"POST /webhooks/" + canvas.String() + "/one/":              "404",
		"POST /webhooks/" + other.String() + "/":                   "404",
		"POST /other":                                              "404",
		"POST /webhooks":                                           "404",
		"POST /webhooks//both":                                     "404",
		"POST //webhooks/" + canvas.String() + "/both":             "404",
		"POST /webhooks/./" + canvas.String() + "/both":            "404",
		"POST /webhooks/x/../" + canvas.String() + "/both":         "404",
		"POST /webhooks/" + canvas.String() + "%2fboth":            "all",
		"POST /webhooks/" + strings.Repeat("x", 100_000) + "/both": "404",
		strings.Repeat("X", 100_000) + " /webhooks/":               "405",
		"POST /webhooks/not-a-uuid/both":                           "404",
		"POST /webhooks/00000000-0000-0000-0000-000000000000/both": "404",
		"GET /webhooks/" + other.String() + "/one":                 "405",
		"PUT /webhooks/" + other.String() + "/one":                 "405",
	} {
		method, target, _ := strings.Cut(path, " ")
		before := len(r.store.Events())
		r.logs.TakeAll()
		answer := httptest.NewRecorder()
		r.handler.ServeHTTP(answer, httptest.NewRequest(method, target, strings.NewReader(`1`)))
		got := fmt.Sprint(answer.Code)
		if events := r.store.Events(); len(events) > before {
			got = events[len(events)-1].Name
		} else if answer.Body.Len() > 0 || len(r.reasons()) != 1 {
			t.Errorf("%s: body %q, reasons %v", path, answer.Body, r.reasons())
		}
		if log := fmt.Sprint(r.logs.All()); len(log) > 1500 {
			t.Errorf("%.80s: %d bytes in the log", path, len(log))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestConfigurationsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	queue, err := eventqueue.New(memstore.New(memstore.Config{}), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, queue)
	good := source(webhook.ToHandler(key))
	for want, change := range map[string]func(c *webhook.Config){
		"MaxBodyBytes":     func(c *webhook.Config) { c.MaxBodyBytes = -1 },
		"MaxBufferedBytes": func(c *webhook.Config) { c.MaxBufferedBytes = 300_000 },
		"ReadTimeout":      func(c *webhook.Config) { c.ReadTimeout = -1 },
		"RetainDelivery":   func(c *webhook.Config) { c.RetainDelivery = eventqueue.MaxUniqueFor + 1 },
		"Sources":          func(c *webhook.Config) { c.Sources = nil },
		"twice":            func(c *webhook.Config) { c.Sources = []webhook.Source{good, good} },
		"a name":           func(c *webhook.Config) { c.Sources[0].Name = "a/b" },
		"Verifier":         func(c *webhook.Config) { c.Sources[0].Verifier = nil },
		"Cast":             func(c *webhook.Config) { c.Sources[0].Cast = nil },
	} {
		config := webhook.Config{Sources: []webhook.Source{good}}
		change(&config)
		if _, err := webhook.New(queue, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := webhook.New(nil, webhook.Config{Sources: []webhook.Source{good}}); err == nil {
		t.Error("no queue is no error")
	}
}

// TestNoSecretReachesTheLog, nor a signature, nor the body.
func TestNoSecretReachesTheLog(t *testing.T) {
	t.Parallel()
	for _, s := range schemes() {
		verifier, err := s.make(s.secrets[0])
		r := of(t, verifier, err)
		body := s.body("id", []byte(`"pssst"`))
		h := s.sign(body, s.secrets[1], at(0), "id")
		r.post(h, body)
		r.post(s.sign(body, s.secrets[0], at(0), "id"), body)
		log := fmt.Sprint(r.logs.All())
		for _, secret := range []string{s.secrets[0], s.secrets[1], h.Get(s.signature), "pssst"} {
			if strings.Contains(log, secret) {
				t.Errorf("%s: the log has %q: %s", s.name, secret, log)
			}
		}
	}
}

// TestManyRefusalsHaveFewLines, by source and status, and all of them are observed.
func TestManyRefusalsHaveFewLines(t *testing.T) {
	t.Parallel()
	refusing := webhook.VerifierFunc(func(*webhook.Request) (v webhook.Verified, err error) { return v, errors.New("forged") })
	observed := 0
	r := newRig(t, webhook.Config{Sources: []webhook.Source{{Name: "hook", Verifier: refusing, Cast: webhook.ToHandler(key)}},
		Observe: func(webhook.Source, webhook.Outcome, error) { observed++ }})
	for i := range 500 {
		r.post(nil, []byte(`1`))
		r.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, fmt.Sprintf("/webhooks/%s/none%d", canvas, i), http.NoBody))
	}
	if lines := r.logs.FilterMessage("webhook refused").Len(); lines != 2*lograte.Most || observed != 500 {
		t.Errorf("%d lines, and %d were observed", lines, observed)
	}
}
