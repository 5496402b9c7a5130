package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"eventsv2/access"
	"eventsv2/dashboard"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/audit"
	"eventsv2/eventqueue/ndjson"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// lockTimeout is that of the services.
const lockTimeout = time.Minute

// refresh is how often a page that is looked at is renewed.
const refresh = 100 * time.Millisecond

var bookshop = eventqueue.CanvasID{0xb8, 0x4e, 6: 0x4f, 8: 0xa1, 15: 1}

// The handlers of the scenarios.
var (
	placeOrder  = eventqueue.HandlerKey{Module: "WORKER", Name: "order_placed", Modifier: "_"}
	chargeCard  = eventqueue.HandlerKey{Module: "WORKER", Name: "charge_card", Modifier: "_"}
	mailReceipt = eventqueue.HandlerKey{Module: "WORKER", Name: "mail_receipt", Modifier: "_"}
)

// shop is a service that sells books, and its dashboard.
type shop struct {
	t       *testing.T
	service *service.Service
	address string
	// bankAway has each card be refused that is not valid.
	bankAway atomic.Bool
	// attempts is how often a card was charged.
	attempts atomic.Int64
}

// newShop starts a service with its handlers, and a dashboard that people log in to.
func newShop(t *testing.T) *shop {
	t.Helper()
	return newShopWith(t, worker.Config{RetainHistory: true})
}

// newShopWith is newShop with a worker of its own kind.
func newShopWith(t *testing.T, with worker.Config) *shop {
	t.Helper()
	shared.connection(t) // or skip
	result.scenario(t)
	s := &shop{t: t}
	s.bankAway.Store(true)
	opened, err := service.Open(testenv.Context(t), service.Config{Pool: testenv.Pool(t), LockTimeout: lockTimeout, Worker: with, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	s.service = opened
	s.handles(placeOrder, s.placeOrder)
	s.handles(chargeCard, s.charge)
	s.handles(mailReceipt, nothing)
	return s
}

func nothing(context.Context, *eventqueue.Run) error { return nil }

// handles registers a handler, which may be held for as long as pages are looked at.
func (s *shop) handles(key eventqueue.HandlerKey, f eventqueue.HandlerFunc) {
	s.t.Helper()
	if err := s.service.Register(key, f, eventqueue.Policy{Timeout: pageLimit}); err != nil {
		s.t.Fatal(err)
	}
}

// open runs the service, and serves its dashboard, until the test ends.
func (s *shop) open() *shop {
	s.t.Helper()
	operations, err := operate.NewOperations(s.service.Store(), s.service.Queue, testenv.Logger(s.t))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running errgroup.Group
	running.Go(func() error { return s.service.Run(ctx) })
	running.Go(func() error { return operations.Run(ctx) })
	pages, err := dashboard.New(dashboard.Config{Store: s.service.Store(), Queue: s.service.Queue, Bulk: operations,
		Refresh: refresh,
		Access:  &access.Authenticator{Tokens: s.tokens()}, Log: testenv.Logger(s.t)})
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	s.address = server.URL
	s.t.Cleanup(func() {
		pages.Close()
		server.Close()
		cancel()
		if err := errors.Join(running.Wait(), s.service.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return s
}

// placeOrder has the card charged and a receipt sent.
func (s *shop) placeOrder(ctx context.Context, run *eventqueue.Run) error {
	_, err := s.service.EmitMany(ctx, []eventqueue.NewEvent{
		event(run.Canvas, chargeCard, `{"card":"valid"}`), event(run.Canvas, mailReceipt, `{"to":"ada@shop.example"}`),
	})
	return err
}

func (s *shop) charge(_ context.Context, run *eventqueue.Run) error {
	n := s.attempts.Add(1)
	if s.bankAway.Load() && !strings.Contains(string(run.Value), `"valid"`) {
		return eventqueue.Permanent(fmt.Errorf("the bank answers 503 to request %d: closed for maintenance", 4000+n))
	}
	return nil
}

func event(canvas eventqueue.CanvasID, key eventqueue.HandlerKey, value string) eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: json.RawMessage(value)}
}

func (s *shop) emits(n int, key eventqueue.HandlerKey, value string) []eventqueue.EventID {
	s.t.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = event(bookshop, key, value)
	}
	ids, err := s.service.EmitMany(testenv.Context(s.t), events)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// fails emits events of cards that the bank refuses, and waits until they have failed.
func (s *shop) fails(n int) []eventqueue.EventID {
	s.t.Helper()
	ids := s.emits(n, chargeCard, `{"order":1044,"card":"expired"}`)
	s.ended(n, "FAILED", chargeCard)
	return ids
}

// ended waits until so many events of a handler have ended in a way.
func (s *shop) ended(n int, status string, key eventqueue.HandlerKey) {
	s.t.Helper()
	testenv.Eventually(s.t, fmt.Sprintf("%d events of %s are %s", n, key.Name, status), func() bool {
		return s.one(`SELECT count(*)::text FROM event_log WHERE status::text = $1 AND name = $2`, status, key.Name) == fmt.Sprint(n)
	})
}

// allEnd waits until no event is left.
func (s *shop) allEnd() {
	s.t.Helper()
	testenv.Eventually(s.t, "all events have ended", func() bool { return s.one(`SELECT count(*)::text FROM events_v2`) == "0" })
}

// holds pauses a handler.
func (s *shop) holds(key eventqueue.HandlerKey, reason string) {
	s.t.Helper()
	rule := operate.RuleOf(operate.PauseRule, eventqueue.Scope{Canvas: bookshop, Module: key.Module, Name: key.Name})
	rule.Reason, rule.Actor = reason, "os:grace"
	if _, err := s.service.Store().AddRule(testenv.Context(s.t), rule); err != nil {
		s.t.Fatal(err)
	}
}

// counts has what is pending counted, as cron does each minute.
func (s *shop) counts() {
	s.t.Helper()
	if _, err := s.service.Store().CountWaiting(testenv.Context(s.t), eventqueue.Scope{}); err != nil {
		s.t.Fatal(err)
	}
}

// one returns the only value of a query, as a text.
func (s *shop) one(sql string, args ...any) (text string) {
	s.t.Helper()
	if err := s.service.Pool().QueryRow(testenv.Context(s.t), sql, args...).Scan(&text); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return text
}

func (s *shop) exec(sql string) {
	s.t.Helper()
	if _, err := s.service.Pool().Exec(testenv.Context(s.t), sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tokens() *access.Tokens { return access.NewTokens("", s.service.Pool()) }

// visitor opens the dashboard for somebody with some verbs, who has logged in.
func (s *shop) visitor(verbs ...access.Verb) *page {
	s.t.Helper()
	p := newPage(s.t, s.address)
	p.logsIn(s.token(verbs...))
	return p
}

// token makes a token that lets in with some verbs.
func (s *shop) token(verbs ...access.Verb) string {
	s.t.Helper()
	return s.tokenOf(nil, verbs...)
}

// tokenOf makes a token for some canvases; nil are all.
func (s *shop) tokenOf(canvases []eventqueue.CanvasID, verbs ...access.Verb) string {
	s.t.Helper()
	_, secret, err := s.tokens().Create(testenv.Context(s.t), audit.Actor{Name: "os:test", Via: "test"},
		access.NewToken{Name: "ada", Grant: access.Grant{Canvases: canvases, Verbs: verbs}})
	if err != nil {
		s.t.Fatal(err)
	}
	return secret
}

// sample is what the demo emits.
const sample = "../../demo/sample.ndjson"

// likeTheDemo lets the service run what the demo emits, with its two cards that are refused, and
// gives it the counts of an hour.
func (s *shop) likeTheDemo() *shop {
	s.t.Helper()
	var events []eventqueue.NewEvent
	text, err := os.ReadFile(sample)
	if err != nil {
		s.t.Fatal(err)
	}
	err = ndjson.Read(strings.NewReader(string(text)), sample, eventqueue.Limits{}, func(_ int, e eventqueue.NewEvent) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	known := map[eventqueue.HandlerKey]bool{placeOrder: true, chargeCard: true, mailReceipt: true}
	for _, e := range events {
		if key := e.Handler(); !known[key] {
			known[key] = true
			s.handles(key, s.refuseSome)
		}
	}
	s.open()
	if _, err := s.service.EmitMany(testenv.Context(s.t), events); err != nil {
		s.t.Fatal(err)
	}
	s.allEnd()
	s.emits(3, chargeCard, `{"order":1044,"card":"expired"}`)
	s.allEnd()
	s.exec(countsOfAnHour)
	s.holds(mailReceipt, "The mail server is being replaced until noon.")
	s.emits(4, mailReceipt, `{"to":"reader1044@shop.example","order":1044}`)
	s.emitsKeyed()
	s.exec(sourcesOfADay)
	s.exec(requestsOfADay)
	s.exec(`UPDATE events_v2 SET locked_at = clock_timestamp(), begun = true, attempts = 1, claim_id = (SELECT number FROM event_workers LIMIT 1)::bigint << 31 | 2
		WHERE id = (SELECT min(event_id) FROM event_groups WHERE group_key = 'key order 1051')`)
	s.counts()
	return s
}

// emitsKeyed emits events of ordering keys, which wait behind a card that is charged slowly and behind the pause, and
// sets limits.
func (s *shop) emitsKeyed() {
	s.t.Helper()
	ctx := testenv.Context(s.t)
	for _, limit := range []operate.RateLimit{
		{Scope: eventqueue.Scope{Canvas: bookshop, Module: mailReceipt.Module, Name: mailReceipt.Name}, PerMinute: 60, PerDay: 5000, Mode: ratelimit.Exact},
		{Scope: eventqueue.Scope{Canvas: bookshop}, PerDay: 20000, Mode: ratelimit.Exact},
	} {
		if _, err := s.service.Store().SetRateLimit(ctx, limit); err != nil {
			s.t.Fatal(err)
		}
	}
	for _, limit := range []operate.ConcurrencyLimit{{Canvas: bookshop, Module: chargeCard.Module, Name: chargeCard.Name, Max: 2}, {Canvas: bookshop, EveryKey: true, Max: 1}} {
		if _, err := s.service.Store().SetConcurrencyLimit(ctx, limit); err != nil {
			s.t.Fatal(err)
		}
	}
	s.exec(`UPDATE rate_counters SET minute_count = 42, day_count = 4831, minute_at = date_bin('1 minute', clock_timestamp(), 'epoch'), day_at = date_bin('1 day', clock_timestamp(), 'epoch')`)
	for order, n := range map[string]int{"order 1044": 5, "order 1051": 2} {
		for range n {
			e := event(bookshop, mailReceipt, `{"to":"reader1044@shop.example"}`)
			e.OrderingKey = order
			if _, err := s.service.EmitMany(ctx, []eventqueue.NewEvent{e}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// refuseSome is a handler that refuses what the target of the demo refuses.
func (s *shop) refuseSome(_ context.Context, run *eventqueue.Run) error {
	if strings.Contains(string(run.Value), "refuse_in_demo") {
		return eventqueue.Permanent(errors.New("POST https://cards.example/charge: 422 Unprocessable Entity: the card of order " + run.ID.String() + " is blocked"))
	}
	return nil
}

// sourcesOfADay are sources of webhooks, and requestsOfADay what programs that serve them would have handed in.
const (
	sourcesOfADay = `
INSERT INTO webhook_sources (source, canvas_id, scheme, served_at, received_at, refusals) VALUES
    ('shop', '00000000-0000-0000-0000-000000000000', 'stripe', now() - interval '20 s', now() - interval '40 s', jsonb_build_array(
        jsonb_build_object('at', now() - interval '7 min', 'outcome', 'bad signature', 'reason', 'no signature in the request belongs to its body and one of the secrets'),
        jsonb_build_object('at', now() - interval '3 h', 'outcome', 'too old', 'reason', 'the time stamp is more than 5m0s ago'))),
    ('github', '00000000-0000-0000-0000-000000000000', 'github', now() - interval '20 s', now() - interval '11 min', '[]'),
    ('warehouse', 'b84e0000-0000-4f00-a100-000000000001', 'hmac', now() - interval '20 s', NULL, '[]')`
	requestsOfADay = `
INSERT INTO webhook_minutes (minute, source, canvas_id, outcome, requests)
SELECT date_trunc('minute', now()) - i * interval '5 minutes', o.source, uuid '00000000-0000-0000-0000-000000000000', o.outcome, o.n * (6 + 5 * sin(i / 40.0))
FROM generate_series(1, 280) AS i, (VALUES ('shop', 'accepted', 7), ('shop', 'duplicate', 1), ('github', 'accepted', 2), ('github', 'ignored', 3)) AS o (source, outcome, n)
UNION ALL
SELECT date_trunc('minute', now()) - i * interval '7 minutes', 'shop', uuid '00000000-0000-0000-0000-000000000000', o, 40
FROM generate_series(1, 12) AS i, unnest(ARRAY['bad signature', 'too old']) AS o
WHERE o = 'bad signature' OR i > 9`
)

// countsOfAnHour is what the programs would have handed in during an hour of the demo.
// It goes on for the minutes that the test takes.
const countsOfAnHour = `
INSERT INTO event_minutes (minute, canvas_id, module, name, emitted, completed, failed, retried, waits, runs, pending, oldest_due)
SELECT date_trunc('minute', now()) - i * interval '1 minute', h.canvas_id, h.module, h.name,
    h.n * (6 + 2 * sin(i / 6.0)), h.n * (6 + 2 * sin(i / 6.0 - 0.3)), CASE WHEN h.name = 'charge_card' AND i = 7 THEN 2 ELSE 0 END,
    CASE WHEN h.name = 'charge_card' THEN abs(i) % 5 ELSE 0 END,
    ARRAY[20, 30, 40, 20, 5, 2, 1], ARRAY[1, 2, 9, 30, 40, 9, 3], CASE WHEN i > 0 THEN (4 + 3 * cos(i / 9.0)) / 8 END, CASE WHEN i > 0 THEN interval '2 seconds' END
FROM generate_series(-4, 59) AS i,
    (SELECT canvas_id, module, name, count(*) AS n FROM event_log GROUP BY 1, 2, 3) AS h
ON CONFLICT (minute, canvas_id, module, name) DO UPDATE SET emitted = excluded.emitted, completed = excluded.completed, waits = excluded.waits, runs = excluded.runs`
