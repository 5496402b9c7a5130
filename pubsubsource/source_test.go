package pubsubsource_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"eventsv2/eventqueue"
	"eventsv2/pubsubsource"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/testenv"
)

const again = "a message has come again, and emits nothing"

// orders are messages with the data {"order": n}.
func orders(from, to int) (messages []*pubsubpb.PubsubMessage) {
	for n := from; n < to; n++ {
		messages = append(messages, &pubsubpb.PubsubMessage{Data: fmt.Appendf(nil, `{ "order": %d }`, n)})
	}
	return messages
}

// TestMessagesBecomeEvents of the handler and the canvas, through two sources of one subscription, each once, with data, attributes and ordering key.
func TestMessagesBecomeEvents(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.EmulatorHost(t))
	name := r.subscribe("orders", nil)
	for range 2 {
		r.run(r.source(r.queue, r.config(name)))
	}
	r.publish(orders(0, 230)...)
	r.publish(&pubsubpb.PubsubMessage{Data: []byte(`{ "order":  900 }`), Attributes: map[string]string{"eventType": "PLACED", "user": "ada"}},
		&pubsubpb.PubsubMessage{Attributes: map[string]string{"only": "attributes"}})
	r.awaitCount(232, `SELECT count(*) FROM events_v2 WHERE canvas_id = $1 AND module = 'WORKER' AND name = 'order_placed' AND modifier = '_'`, canvas)
	if n := r.count(`SELECT count(DISTINCT value) FROM events_v2`); n != 232 {
		t.Errorf("%d different values", n)
	}
	if n := r.count(`SELECT count(*) FROM events_v2 WHERE value = '{ "order":  900 }' AND attributes = '{"eventtype": "PLACED", "user": "ada"}'
		OR value = 'null' AND attributes = '{"only": "attributes"}'`); n != 2 {
		t.Errorf("%d of two events have their attributes", n)
	}
}

// TestEventsHaveTheOrderOfTheirMessages if the subscription orders messages.
func TestEventsHaveTheOrderOfTheirMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.EmulatorHost(t))
	name := r.subscribe("orders", func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true })
	for n := range 40 {
		message := orders(n, n+1)[0]
		message.OrderingKey = fmt.Sprint("customer ", n%3)
		r.publish(message)
	}
	r.run(r.source(r.queue, r.config(name)))
	r.awaitCount(40, `SELECT count(*) FROM events_v2 WHERE ordering_key LIKE 'customer _'`)
	if n := r.count(`SELECT count(*) FROM events_v2 AS a JOIN events_v2 AS b USING (ordering_key)
		WHERE a.id < b.id AND (a.value::json->>'order')::int > (b.value::json->>'order')::int`); n != 0 {
		t.Errorf("%d pairs of events of one key are the other way round", n)
	}
}

// TestKillBetweenCommitAndAcknowledgeEmitsNothingTwice: the events are committed, and no acknowledgement arrives; another program gets the
// messages again.
func TestKillBetweenCommitAndAcknowledgeEmitsNothingTwice(t *testing.T) {
	t.Parallel()
	emulator := testenv.EmulatorHost(t)
	proxy, err := pubsubproxy.Open(testenv.Context(t), emulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.Set("Acknowledge", pubsubproxy.Hang)
	r := newRig(t, emulator)
	name := r.subscribe("orders", nil)
	r.publish(orders(0, 30)...)
	config := r.config(name)
	config.EmulatorHost = proxy.Address()
	killed := r.source(r.queue, config)
	pubsubsource.SetLease(killed, time.Second)
	stop := r.run(killed)
	r.awaitCount(30, `SELECT count(*) FROM events_v2`)
	stop()
	before := r.logs.FilterMessage(again).Len()
	r.run(r.source(r.queue, r.config(name)))
	r.awaitLogs(before+30, again)
	if n := r.count(`SELECT count(*) FROM events_v2`); n != 30 {
		t.Errorf("%d events", n)
	}
}

// TestMessagesAreHeldWhileTheDatabaseIsAway, and become events once it is back.
func TestMessagesAreHeldWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	r := newRig(t, testenv.EmulatorHost(t))
	server := r.pool.Config().ConnConfig
	proxy := testenv.Proxy(t, fmt.Sprintf("%s:%d", server.Host, server.Port))
	away := r.pool.Config().Copy()
	away.ConnConfig.Host, away.ConnConfig.Port, away.ConnConfig.Fallbacks = "127.0.0.1", netip.MustParseAddrPort(proxy.Address).Port(), nil
	pool, err := pgxpool.NewWithConfig(ctx, away)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	name := r.subscribe("orders", nil)
	source := r.source(newQueue(t, pool), r.config(name))
	r.run(source)
	proxy.Refuse.Store(true)
	proxy.Break()
	r.publish(orders(0, 20)...)
	testenv.Eventually(t, "the source says that it takes nothing in", func() bool { return source.Err() != nil })
	var failure *pubsubsource.Error
	if err := source.Err(); err != nil && (!errors.As(err, &failure) || failure.Subscription != name) {
		t.Errorf("Err = %v", err)
	}
	proxy.Refuse.Store(false)
	r.awaitCount(20, `SELECT count(*) FROM events_v2`)
	testenv.Eventually(t, "the source says that it goes on", func() bool { return source.Err() == nil })
}

// TestMessageOfNoEventIsRefused: it is logged, goes back, and holds up no other message.
func TestMessageOfNoEventIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.EmulatorHost(t))
	ctx := testenv.Context(t)
	if _, err := r.pool.Exec(ctx, `ALTER TABLE events_v2 ADD CHECK (value <> '{ "order": 666 }')`); err != nil {
		t.Fatal(err)
	}
	name := r.subscribe("orders", nil)
	bad := []*pubsubpb.PubsubMessage{{Data: []byte("hello")}, {Data: []byte(`"\u0000"`)}, {Data: []byte("1"), Attributes: map[string]string{"control": "a\x01"}}}
	r.publish(append(append(orders(0, 10), bad...), append(orders(666, 667), orders(10, 20)...)...)...)
	dead := "projects/" + r.project + "/subscriptions/dead"
	if _, err := r.subscriptions.CreateSubscription(ctx, &pubsubpb.Subscription{Name: dead, Topic: r.topic("refused")}); err != nil {
		t.Fatal(err)
	}
	r.run(r.source(r.queue, r.config(name)))
	r.awaitCount(20, `SELECT count(*) FROM events_v2`)
	r.awaitLogs(4, "no event can be made of a message; it goes back to its subscription, and from there to the dead-letter topic in the end")
	found := map[string]bool{}
	testenv.Eventually(t, "the dead-letter topic has the messages", func() bool {
		pulling, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		answer, err := r.subscriptions.Pull(pulling, &pubsubpb.PullRequest{Subscription: dead, MaxMessages: 10})
		for _, m := range answer.GetReceivedMessages() {
			found[string(m.GetMessage().GetData())] = true
		}
		return (err == nil || pulling.Err() != nil) && len(found) == 4
	})
	if n := r.count(`SELECT count(*) FROM events_v2`); n != 20 {
		t.Errorf("%d events", n)
	}
}

// TestUnfitSubscriptionsAreRefusedAtStart with what to do; one that is gone later is waited for.
func TestUnfitSubscriptionsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.EmulatorHost(t))
	for id, c := range map[string]struct {
		change func(s *pubsubpb.Subscription)
		want   string
	}{
		"endless": {func(s *pubsubpb.Subscription) { s.DeadLetterPolicy = nil }, "gcloud pubsub subscriptions update endless --project=" + r.project + " --dead-letter-topic=TOPIC"},
		"pushes": {func(s *pubsubpb.Subscription) {
			s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "http://127.0.0.1:1/push"}
		}, "it pushes to http://127.0.0.1:1/push: run gcloud pubsub subscriptions modify-push-config pushes"},
	} {
		source := r.source(r.queue, r.config(r.subscribe(id, c.change)))
		if err := source.Run(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Run = %v, want %q", id, err, c.want)
		}
	}
	missing := r.source(r.queue, r.config("projects/"+r.project+"/subscriptions/missing"))
	if err := missing.Run(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "it does not exist: correct its name, or run gcloud pubsub subscriptions create missing --project="+r.project) {
		t.Errorf("Run = %v", err)
	}
	name := r.subscribe("gone", nil)
	source := r.source(r.queue, r.config(name))
	r.run(source)
	r.publish(orders(0, 1)...)
	r.awaitCount(1, `SELECT count(*) FROM events_v2`)
	if err := r.subscriptions.DeleteSubscription(testenv.Context(t), &pubsubpb.DeleteSubscriptionRequest{Subscription: name}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the source says that it takes nothing in", func() bool { return source.Err() != nil })
	r.subscribe("gone", nil)
	r.publish(orders(1, 2)...)
	r.awaitCount(2, `SELECT count(*) FROM events_v2`)
}

// TestRightsAreNamed that the service account lacks.
func TestRightsAreNamed(t *testing.T) {
	t.Parallel()
	emulator := testenv.EmulatorHost(t)
	proxy, err := pubsubproxy.Open(testenv.Context(t), emulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.Set("GetSubscription", pubsubproxy.Refuse(codes.PermissionDenied, "no"))
	r := newRig(t, emulator)
	config := r.config(r.subscribe("orders", nil))
	config.EmulatorHost = proxy.Address()
	if err := r.source(r.queue, config).Run(testenv.Context(t)); err == nil || !strings.Contains(err.Error(), "grant it roles/pubsub.subscriber and roles/pubsub.viewer") {
		t.Errorf("Run = %v", err)
	}
}

// TestKeyIsTakenForAsLongAsMessagesAreRetained, and for three days at least.
func TestKeyIsTakenForAsLongAsMessagesAreRetained(t *testing.T) {
	t.Parallel()
	r := newRig(t, testenv.EmulatorHost(t))
	for id, retained := range map[string]time.Duration{"short": time.Hour, "long": 6 * 24 * time.Hour} {
		config := r.config(r.subscribe(id, func(s *pubsubpb.Subscription) { s.MessageRetentionDuration = durationpb.New(retained) }))
		config.Handler.Name = id
		r.run(r.source(r.queue, config))
	}
	r.publish(orders(0, 1)...)
	r.awaitCount(1, `SELECT count(*) FROM events_v2 WHERE name = 'short' AND unique_seconds = 259200 AND unique_key LIKE 'pubsub projects/%/subscriptions/short %'`)
	r.awaitCount(1, `SELECT count(*) FROM events_v2 WHERE name = 'long' AND unique_seconds = 518400`)
}

// TestInvalidConfigIsRefused by the name of the field.
func TestInvalidConfigIsRefused(t *testing.T) {
	t.Parallel()
	good := pubsubsource.Config{Subscription: "projects/p/subscriptions/orders", Canvas: canvas, Handler: handler}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]struct {
		change func(*pubsubsource.Config)
		want   string
	}{
		"a short name":  {func(c *pubsubsource.Config) { c.Subscription = "orders" }, `subscription "orders": give its whole name`},
		"a topic":       {func(c *pubsubsource.Config) { c.Subscription = "projects/p/topics/orders" }, "give its whole name"},
		"no canvas":     {func(c *pubsubsource.Config) { c.Canvas = eventqueue.CanvasID{} }, "canvas is missing"},
		"no module":     {func(c *pubsubsource.Config) { c.Handler.Module = "" }, "module of the handler is empty"},
		"half a name":   {func(c *pubsubsource.Config) { c.Subscription = "projects/p/subscriptions/" }, "give its whole name"},
		"a shell's end": {func(c *pubsubsource.Config) { c.Subscription = "projects/p/subscriptions/orders;ls" }, "give its whole name"},
	} {
		config := good
		c.change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	if _, err := pubsubsource.New(nil, good); err == nil {
		t.Error("New takes no queue")
	}
}
