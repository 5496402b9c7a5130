package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/internal/intake"
	"eventsv2/webhook"
)

// trusting takes every request; the delivery is in X-Id.
var trusting = webhook.VerifierFunc(func(r *webhook.Request) (webhook.Verified, error) {
	return webhook.Verified{Delivery: r.Header.Get("X-Id"), Type: r.Header.Get("X-Type")}, nil
})

func source(cast webhook.Caster) webhook.Source {
	return webhook.Source{Name: "hook", Verifier: trusting, Cast: cast}
}

func TestCasterDecidesWhatIsEmitted(t *testing.T) {
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
		if answer := r.post(header, []byte(`1`)); answer.Code != c.status || len(r.events()) != c.events {
			t.Errorf("%s: status %d, %d events; %v", what, answer.Code, len(r.events()), r.reasons())
		}
	}
	r := newRig(t, webhook.Config{Sources: []webhook.Source{source(one)}})
	r.refuses("no JSON", http.StatusBadRequest, nil, []byte(`a=b`))
	r.refuses("JSON that no column takes", http.StatusUnprocessableEntity, nil, []byte(`"\u0000"`))
}

func TestCheckRunsBeforeAnyWrite(t *testing.T) {
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

func TestRequestsAreServedByPath(t *testing.T) {
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
		before := len(r.events())
		r.logs.TakeAll()
		answer := httptest.NewRecorder()
		r.handler.ServeHTTP(answer, httptest.NewRequest(method, target, strings.NewReader(`1`)))
		got := fmt.Sprint(answer.Code)
		if events := r.events(); len(events) > before {
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
	queue, err := eventqueue.New(&inbox{}, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
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
		"set both":         func(c *webhook.Config) { c.Sources[0].RefuseOverLimit = true },
		"Check": func(c *webhook.Config) {
			c.Check = func(context.Context, eventqueue.CanvasID) (time.Duration, error) { return 0, nil }
		},
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
	if lines := r.logs.FilterMessage("webhook refused").Len(); lines != 2*intake.LogBurst || observed != 500 {
		t.Errorf("%d lines, and %d were observed", lines, observed)
	}
}
