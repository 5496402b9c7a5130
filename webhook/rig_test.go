package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/ndjson"
	"eventsv2/webhook"
)

var (
	canvas = eventqueue.CanvasID{0xca, 15: 1}
	key    = eventqueue.HandlerKey{Module: "WORKER", Name: "hook", Modifier: "_"}
	now    = time.Unix(1_700_000_000, 0)
)

// rig is a handler on a queue in memory.
type rig struct {
	t       *testing.T
	store   *inbox
	handler *webhook.Handler
	logs    *observer.ObservedLogs
	refused atomic.Pointer[string] // why the last request was, as it is observed
}

func newRig(t *testing.T, config webhook.Config) *rig {
	t.Helper()
	r := &rig{t: t, store: &inbox{}}
	queue, err := eventqueue.New(r.store, memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, queue)
	core, logs := observer.New(zap.DebugLevel)
	config.Logger, r.logs = zap.New(core), logs
	if config.Observe == nil {
		config.Observe = func(_ webhook.Source, _ webhook.Outcome, refused error) {
			if refused != nil {
				r.refused.Store(new(refused.Error()))
			}
		}
	}
	if config.Clock == nil {
		config.Clock = func() time.Time { return now }
	}
	if r.handler, err = webhook.New(queue, config); err != nil {
		t.Fatal(err)
	}
	return r
}

// of makes a rig with one source, "hook".
func of(t *testing.T, verifier webhook.Verifier, err error) *rig {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return newRig(t, webhook.Config{Sources: []webhook.Source{{Name: "hook", Verifier: verifier, Cast: webhook.ToHandler(key)}}})
}

// events returns what has been emitted, in order.
func (r *rig) events() []stored {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	return slices.Clone(r.store.events)
}

// inbox is a database that takes events in, those with a key once. What Postgres does at the same moment for two of
// them is tested on Postgres.
type inbox struct {
	eventqueue.EmitStore // its other methods are not called

	alone sync.Mutex // held by a transaction

	mu            sync.Mutex
	events        []stored
	before, after error // of inserts
}

// stored is an event in the database.
type stored struct {
	eventqueue.HandlerKey
	Canvas      eventqueue.CanvasID
	Value       string
	UniqueKey   string
	UniqueFor   time.Duration
	OrderingKey string
	Attributes  map[string]string
}

func (s *inbox) Insert(_ context.Context, _ eventqueue.DB, events []eventqueue.NewEvent, _ eventqueue.NotifyMode) (inserted []eventqueue.Inserted, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		return nil, s.before
	}
	for _, e := range events {
		i := slices.IndexFunc(s.events, func(other stored) bool {
			return e.UniqueKey != "" && other.UniqueKey == e.UniqueKey && other.Canvas == e.Canvas
		})
		if i >= 0 {
			inserted = append(inserted, eventqueue.Inserted{ID: eventqueue.EventID(i + 1), Repeat: true})
			continue
		}
		s.events = append(s.events, stored{e.Handler(), e.Canvas, string(e.Value), e.UniqueKey, e.UniqueFor, e.OrderingKey, e.Attributes})
		inserted = append(inserted, eventqueue.Inserted{ID: eventqueue.EventID(len(s.events)), MustNotify: true})
	}
	return inserted, s.after
}

// InTx has one transaction at a time.
func (s *inbox) InTx(ctx context.Context, f func(ctx context.Context, db eventqueue.DB) error) error {
	s.alone.Lock()
	defer s.alone.Unlock()
	s.mu.Lock()
	before := len(s.events)
	s.mu.Unlock()
	err := f(ctx, struct{ eventqueue.DB }{})
	if err != nil {
		s.mu.Lock()
		s.events = s.events[:before]
		s.mu.Unlock()
	}
	return err
}

func (*inbox) Unclaimed(context.Context, []eventqueue.Unanswered) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (s *inbox) fail(before, after error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// post sends a request and returns the answer.
func (r *rig) post(header http.Header, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, "/webhooks/"+canvas.String()+"/hook", bytes.NewReader(body))
	request.Header = header.Clone()
	answer := httptest.NewRecorder()
	r.handler.ServeHTTP(answer, request)
	return answer
}

// accepts asserts that a request becomes one event more, with the body as it is.
func (r *rig) accepts(what string, header http.Header, body []byte) {
	r.t.Helper()
	before := len(r.events())
	answer := r.post(header, body)
	events := r.events()
	if answer.Code != http.StatusOK || len(events) != before+1 {
		r.t.Errorf("%s: status %d, %d events more; the log: %v", what, answer.Code, len(events)-before, r.reasons())
		return
	}
	last := events[len(events)-1]
	if last.Value != string(body) || last.Canvas != canvas || last.HandlerKey != key {
		r.t.Errorf("%s: the event is %+v", what, last)
	}
}

// refuses asserts that a request leaves nothing but a reason. The log has that of the first requests only.
func (r *rig) refuses(what string, status int, header http.Header, body []byte) {
	r.t.Helper()
	before := len(r.events())
	r.refused.Store(nil)
	answer := r.post(header, body)
	if answer.Code != status || answer.Body.Len() > 0 || len(r.events()) != before {
		r.t.Errorf("%s: status %d, want %d, body %q, %d events more; the log: %v", what, answer.Code, status, answer.Body, len(r.events())-before, r.reasons())
	}
	if why := r.refused.Load(); why == nil || *why == "" {
		r.t.Errorf("%s: nothing says why", what)
	}
}

func (r *rig) reasons() (reasons []any) {
	for _, entry := range r.logs.FilterMessage("webhook refused").All() {
		reasons = append(reasons, entry.ContextMap()["error"])
	}
	return reasons
}

// sum is the HMAC that a sender computes.
func sum(secret string, parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	for _, part := range parts {
		_, _ = mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

func hexSum(secret string, parts ...string) string { return hex.EncodeToString(sum(secret, parts...)) }

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// scheme is one way to sign requests.
type scheme struct {
	name    string
	make    func(secrets ...string) (webhook.Verifier, error)
	secrets [2]string
	// sign makes the headers of a genuine request.
	sign      func(body []byte, secret, timestamp, id string) http.Header
	signature string // the header that proves it
	prefix    string // of the value of that header
	unsigned  bool   // the body is not signed
	timed     bool
	wrap      bool // the id is in the body
}

func base64Secret(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func schemes() []scheme {
	standard := func(body []byte, secret, timestamp, id string) http.Header {
		raw, err := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
		if err != nil {
			panic(err)
		}
		return headers("webhook-id", id, "webhook-timestamp", timestamp, "X-Gitlab-Event", "Push Hook",
			"webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(sum(string(raw), id, ".", timestamp, ".", string(body))))
	}
	whsec := [2]string{"whsec_" + base64Secret("s3cret-of-today"), "whsec_" + base64Secret("s3cret-of-yesterday")}
	plain := [2]string{"s3cret-of-today", "s3cret-of-yesterday"}
	return []scheme{
		{name: "github", make: webhook.GitHub, secrets: plain, signature: "X-Hub-Signature-256", prefix: "sha256=",
			sign: func(body []byte, secret, _, id string) http.Header {
				return headers("X-Hub-Signature-256", "sha256="+hexSum(secret, string(body)), "X-GitHub-Delivery", id, "X-GitHub-Event", "push")
			}},
		{name: "gitlab token", make: webhook.GitLabToken, secrets: plain, signature: "X-Gitlab-Token", unsigned: true,
			sign: func(_ []byte, secret, _, id string) http.Header {
				return headers("X-Gitlab-Token", secret, "Idempotency-Key", id, "X-Gitlab-Event", "Push Hook")
			}},
		{name: "gitlab", make: webhook.GitLab, secrets: whsec, sign: standard, signature: "webhook-signature", prefix: "v1,", timed: true},
		{name: "standard", make: webhook.Standard, secrets: whsec, sign: standard, signature: "webhook-signature", prefix: "v1,", timed: true},
		{name: "stripe", make: webhook.Stripe, secrets: plain, signature: "Stripe-Signature", prefix: "t=", timed: true, wrap: true,
			sign: func(body []byte, secret, timestamp, _ string) http.Header {
				return headers("Stripe-Signature", "t="+timestamp+",v1="+hexSum(secret, timestamp, ".", string(body))+",v0=00")
			}},
		{name: "slack", make: webhook.Slack, secrets: plain, signature: "X-Slack-Signature", prefix: "v0=", timed: true, wrap: true,
			sign: func(body []byte, secret, timestamp, _ string) http.Header {
				return headers("X-Slack-Request-Timestamp", timestamp, "Content-Type", "application/json",
					"X-Slack-Signature", "v0="+hexSum(secret, "v0:", timestamp, ":", string(body)))
			}},
		{name: "hmac", secrets: plain, signature: "X-Sig", prefix: "", timed: true,
			make: func(secrets ...string) (webhook.Verifier, error) {
				return webhook.NewHMAC(webhook.HMAC{Secrets: secrets, Header: "X-Sig", Encoding: "base64",
					Signed: "{id}:{timestamp}:{body}:end", TimestampHeader: "X-Time", IDHeader: "X-Id", TypeHeader: "X-Type"})
			},
			sign: func(body []byte, secret, timestamp, id string) http.Header {
				return headers("X-Time", timestamp, "X-Id", id, "X-Type", "t",
					"X-Sig", base64.StdEncoding.EncodeToString(sum(secret, id, ":", timestamp, ":", string(body), ":end")))
			}},
	}
}

// at is a time stamp so many seconds from now.
func at(seconds int64) string { return strconv.FormatInt(now.Unix()+seconds, 10) }

// body returns a body for a scheme, with an id if the scheme needs one.
func (s scheme) body(id string, data []byte) []byte {
	if !s.wrap {
		return data
	}
	return fmt.Appendf(nil, `{ "id": %[1]q, "event_id": %[1]q, "type": "event_callback", "event": {"type": "t"}, "data": %[2]s }`, id, data)
}

// bodies returns those of real webhooks if they are stored beside the project, and
// otherwise a few of our own.
func bodies(t *testing.T) [][]byte {
	t.Helper()
	own := [][]byte{[]byte(`{ "b": 1.0,  "a": [1e400, "\u00fc ü"], "nested": {"x": null} }`), []byte("[]\n"), []byte(` "text" `)}
	file, err := os.Open("../../shared/data/github-webhooks.ndjson")
	if err != nil {
		return own
	}
	defer func() { _ = file.Close() }() // it was only read
	err = ndjson.Read(file, file.Name(), eventqueue.Limits{}, func(_ int, e eventqueue.NewEvent) error {
		own = append(own, bytes.Clone(e.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bodies", len(own))
	return own
}

// reserialised is the same JSON in other bytes.
func reserialised(t *testing.T, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, body, "", "   "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// closeAtEnd closes a queue with the test: commits without an answer are searched for until then.
func closeAtEnd(t *testing.T, queue *eventqueue.Queue) {
	t.Helper()
	t.Cleanup(func() {
		if err := queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
