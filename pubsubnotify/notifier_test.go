package pubsubnotify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

func TestValidateNamesEveryField(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Config{ProjectID: "a/b", Topic: "t", Subscription: "google", EmulatorHost: "http://x:1"})
	if err == nil {
		t.Fatal("New = nil error, want one")
	}
	for _, field := range []string{"ProjectID", "Topic", "Subscription", "EmulatorHost"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("New = %v, want it to name %s", err, field)
		}
	}
}

// TestMissingTopicOrSubscriptionIsNamed, and mended from outside while the program runs.
func TestMissingTopicOrSubscriptionIsNamed(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	config := fakeConfig(server)
	config.Create = false
	n, logged := openLogged(t, config)
	err := logged()
	for _, want := range []string{"topic projects/project/topics/topic", "subscription projects/project/subscriptions/subscription",
		"PUBSUB_CREATE=true", "gcloud pubsub topics create", "gcloud pubsub subscriptions create"} {
		if !strings.Contains(err, want) {
			t.Errorf("New logged %s, want it to mention %q", err, want)
		}
	}
	if err := n.Check(testContext(t)); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "PUBSUB_CREATE=true") {
		t.Errorf("Check = %v, want NotFound and a remedy", err)
	}
	seed(t, server, wantedSubscription(config))
	if err := n.Attend(testContext(t)); err != nil {
		t.Errorf("Attend = %v", err)
	}
}

// openLogged is open, and the error that is logged.
func openLogged(t *testing.T, config Config) (*Notifier, func() string) {
	t.Helper()
	core, logs := observer.New(zapcore.WarnLevel)
	config.Logger = zap.New(core)
	return open(t, config), func() string {
		if logs.Len() != 1 {
			t.Fatalf("%d lines were logged, want 1: %v", logs.Len(), logs.All())
		}
		return fmt.Sprint(logs.All()[0].ContextMap()["error"])
	}
}

// TestStartNeedsNoAnswer opens a notifier where nobody listens, or where
// a server accepts and says nothing, and answers later.
func TestStartNeedsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"port is closed": false, "server accepts": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeServer(t)
			p := testenv.Proxy(t, server.Addr)
			p.Refuse.Store(!silent)
			p.Swallow.Store(silent)
			config := fakeConfig(server)
			config.EmulatorHost = p.Address
			n, logged := openLogged(t, config)
			if err := logged(); !strings.Contains(err, p.Address+" does not answer") {
				t.Errorf("New logged %s, want that %s does not answer", err, p.Address)
			}
			p.Refuse.Store(false)
			p.Swallow.Store(false)
			if err := n.Attend(testContext(t)); err != nil {
				t.Fatalf("Attend = %v", err)
			}
			if err := n.Publish(testContext(t), []eventqueue.Notification{notification(1)}); err != nil {
				t.Errorf("Publish = %v", err)
			}
			pull(t, n, 1)
		})
	}
}

// TestWrongSettingsAreRefusedOnceSeen, also when that is later than New.
func TestWrongSettingsAreRefusedOnceSeen(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	p := testenv.Proxy(t, server.Addr)
	p.Refuse.Store(true)
	config := fakeConfig(server)
	config.EmulatorHost = p.Address
	n := open(t, config)
	wrong := wantedSubscription(config)
	wrong.RetryPolicy = &pubsubpb.RetryPolicy{}
	seed(t, server, wrong)
	p.Refuse.Store(false)
	err := n.Attend(testContext(t))
	if _, atOnce := New(testContext(t), config); err == nil || atOnce == nil || err.Error() != atOnce.Error() {
		t.Errorf("Attend = %v, and New = %v; want the same error", err, atOnce)
	}
}

// TestDeletedTopicIsCreatedAgain, with a subscription that gets its messages.
func TestDeletedTopicIsCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, notice := range map[string]func(n *Notifier) error{
		"Publish": func(n *Notifier) error {
			return n.Publish(t.Context(), []eventqueue.Notification{notification(1)})
		},
		"Check": func(n *Notifier) error { return n.Check(t.Context()) },
	} {
		for on, host := range map[string]func(*testing.T) string{
			"fake server": func(t *testing.T) string { return fakeServer(t).Addr },
			"emulator":    func(t *testing.T) string { return testenv.EmulatorHost(t) },
		} {
			t.Run(name+" on "+on, func(t *testing.T) {
				t.Parallel()
				id := "deleted-by-" + name
				ctx := testContext(t)
				n := open(t, Config{ProjectID: "healing", Topic: id, Subscription: id, Create: true, EmulatorHost: host(t)})
				if err := n.connection.clients().topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: n.topic}); err != nil {
					t.Fatal(err)
				}
				if err := notice(n); err == nil {
					t.Error("a deleted topic was not noticed")
				}
				if err := n.Check(ctx); err != nil {
					t.Errorf("Check = %v after the topic was made again", err)
				}
				if err := n.Publish(ctx, []eventqueue.Notification{notification(2)}); err != nil {
					t.Errorf("Publish = %v after the topic was made again", err)
				}
				if got := pull(t, n, 1); got[0].Event != 2 {
					t.Errorf("pulled %+v", got)
				}
			})
		}
	}
}

// TestReplacedSubscriptionIsNotDeleted: of two that see a subscription without its topic
// the slower one must not delete what the faster one has made.
func TestReplacedSubscriptionIsNotDeleted(t *testing.T) {
	t.Parallel()
	deletes := &reaction{}
	server := fakeServer(t, pstest.ServerReactorOption{FuncName: "DeleteSubscription", Reactor: deletes})
	config, ctx := fakeConfig(server), testContext(t)
	fast, slow := open(t, config), open(t, config)
	if _, err := server.GServer.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: fast.topic}); err != nil {
		t.Fatal(err)
	}
	seen, err := lookUp(ctx, config, slow.connection.clients())
	if err != nil || !seen.orphaned {
		t.Fatalf("the slow worker sees %+v, %v", seen, err)
	}
	_ = fast.Check(ctx) // says what it has found, and mends it
	if err := fast.Publish(ctx, []eventqueue.Notification{notification(1)}); err != nil {
		t.Fatal(err)
	}
	if err := seen.create(ctx, config, slow.connection.clients()); err != nil {
		t.Fatal(err)
	}
	if n := deletes.calls.Load(); n != 1 {
		t.Fatalf("the subscription was deleted %d times", n)
	}
	if got := pull(t, slow, 1); got[0].Event != 1 {
		t.Errorf("pulled %+v", got)
	}
}

// TestPublishingNeedsTheTopicOnly, and no right but to publish.
func TestPublishingNeedsTheTopicOnly(t *testing.T) {
	t.Parallel()
	denied := &reaction{answer: func() (any, error) { return nil, status.Error(codes.PermissionDenied, "not yours") }}
	denied.armed.Store(true)
	var options []pstest.ServerReactorOption
	for _, method := range []string{"GetTopic", "GetSubscription", "CreateSubscription", "Pull"} {
		options = append(options, pstest.ServerReactorOption{FuncName: method, Reactor: denied})
	}
	server := fakeServer(t, options...)
	config := fakeConfig(server)
	config.Create = false
	if _, err := server.GServer.CreateTopic(testContext(t), &pubsubpb.Topic{Name: config.topicPath()}); err != nil {
		t.Fatal(err)
	}
	p, err := NewPublisher(testContext(t), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if n := denied.calls.Load(); n != 0 {
		t.Errorf("NewPublisher made %d calls", n)
	}
	if err := p.Publish(testContext(t), []eventqueue.Notification{notification(1)}); err != nil {
		t.Errorf("Publish = %v", err)
	}
	if err := p.Check(testContext(t)); err != nil {
		t.Errorf("Check = %v, though the role may not look", err)
	}
}

// TestNothingIsPublishedToATopicWithoutItsSubscription has the server make the topic at the start, and
// no subscription until later: Pub/Sub would accept notifications, and drop them.
func TestNothingIsPublishedToATopicWithoutItsSubscription(t *testing.T) {
	t.Parallel()
	for name, newPublisher := range map[string]func(*testing.T, Config) eventqueue.Publisher{
		"a notifier": func(t *testing.T, config Config) eventqueue.Publisher { return open(t, config) },
		"a publisher": func(t *testing.T, config Config) eventqueue.Publisher {
			p, err := NewPublisher(testContext(t), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			busy := &reaction{answer: func() (any, error) { return nil, status.Error(codes.Unavailable, "busy") }}
			busy.armed.Store(true)
			server := fakeServer(t, pstest.ServerReactorOption{FuncName: "CreateSubscription", Reactor: busy})
			config := fakeConfig(server)
			publisher := newPublisher(t, config)
			if err := publisher.Publish(testContext(t), []eventqueue.Notification{notification(1)}); err == nil || !strings.Contains(err.Error(), "create subscription "+config.subscriptionPath()) {
				t.Fatalf("Publish without a subscription = %v, want an error that names it", err)
			}
			busy.armed.Store(false)
			if err := publisher.Publish(testContext(t), []eventqueue.Notification{notification(2)}); err != nil {
				t.Errorf("Publish = %v, though the subscription can be made now", err)
			}
			if got := server.Messages(); len(got) != 1 {
				t.Fatalf("%d messages were published, want the one that a subscription gets", len(got))
			}
			if got := pull(t, open(t, config), 10); len(got) != 1 || got[0].Event != 2 {
				t.Errorf("Pull = %v, want the notification of event 2", got)
			}
		})
	}
}

// TestPublisherNeedsNoRightToCreate: what it was told to make, others have made.
func TestPublisherNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	denied := &reaction{answer: func() (any, error) { return nil, status.Error(codes.PermissionDenied, "not yours") }}
	denied.armed.Store(true)
	server := fakeServer(t, pstest.ServerReactorOption{FuncName: "GetTopic", Reactor: denied})
	config := fakeConfig(server)
	seed(t, server, wantedSubscription(config))
	n := open(t, config)
	for id := range int64(3) {
		if err := n.Publish(testContext(t), []eventqueue.Notification{notification(id + 1)}); err != nil {
			t.Errorf("Publish = %v", err)
		}
	}
	if calls := denied.calls.Load(); calls != 2 {
		t.Errorf("the topic was asked for %d times, want at the start and before the first notification", calls)
	}
}

// TestSilentConnectionIsReplaced has a proxy swallow what is sent on the
// connections of its time, for good.
func TestSilentConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	p := testenv.Proxy(t, server.Addr)
	config := fakeConfig(server)
	config.EmulatorHost = p.Address
	n := open(t, config)
	p.Swallow.Store(true) // and what it has swallowed it goes on swallowing
	ask := func() error {
		ctx, cancel := context.WithTimeout(testContext(t), redialGap)
		defer cancel()
		return n.Check(ctx)
	}
	if err := ask(); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("Check = %v, want that nobody answers", err)
	}
	p.Swallow.Store(false)
	testenv.Eventually(t, "a new connection is used", func() bool { return ask() == nil })
}

// TestSlowServerIsDialedOnceForAllCalls: once for all calls that a connection has not answered,
// not again a moment later, and not when the notifier is closed.
func TestSlowServerIsDialedOnceForAllCalls(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	n, err := New(testContext(t), fakeConfig(server))
	if err != nil {
		t.Fatal(err)
	}
	l := &n.connection
	aged := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dialed = time.Now().Add(-redialGap)
	}
	first := l.clients()
	aged()
	l.redial(first)
	second := l.clients()
	if second == first {
		t.Fatal("a connection that nobody answered on is kept")
	}
	if l.redial(second); l.clients() != second {
		t.Error("dialled again a moment later")
	}
	aged()
	if l.redial(first); l.clients() != second {
		t.Error("dialled because of a connection that was given up already")
	}
	aged()
	if l.redial(second); first.conn.GetState() != connectivity.Shutdown {
		t.Error("the connection before the last is kept open")
	}
	third := l.clients()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	aged()
	if l.redial(third); l.clients() != third {
		t.Error("dialled after Close")
	}
}

func TestConcurrentWorkersCreateOneSubscription(t *testing.T) {
	t.Parallel()
	for name, host := range map[string]func(*testing.T) string{
		"fake server": func(t *testing.T) string { return fakeServer(t).Addr },
		"emulator":    func(t *testing.T) string { return testenv.EmulatorHost(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := Config{ProjectID: "create-at-once", Topic: "topic", Subscription: "subscription", Create: true, EmulatorHost: host(t)}
			ctx := testContext(t)
			var workers errgroup.Group
			for range 8 {
				workers.Go(func() error {
					n, err := New(ctx, config)
					if err != nil {
						return err
					}
					// On a slow machine New gives up, and Attend goes on.
					return errors.Join(n.Attend(ctx), n.Check(ctx), n.Close())
				})
			}
			if err := workers.Wait(); err != nil {
				t.Errorf("a worker failed: %v", err)
			}
		})
	}
}

func TestCheckNoticesThatTheSubscriptionIsGone(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	n := open(t, fakeConfig(server))
	ctx := testContext(t)
	if err := n.Check(ctx); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	if _, err := server.GServer.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: n.topic}); err != nil {
		t.Fatalf("delete the topic: %v", err)
	}
	if err := n.Check(ctx); err == nil || !strings.Contains(err.Error(), "_deleted-topic_") {
		t.Errorf("Check = %v after the topic was deleted, want an error that says so", err)
	}
	if _, err := server.GServer.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: n.subscription}); err != nil {
		t.Fatalf("delete the subscription: %v", err)
	}
	if err := n.Check(ctx); err == nil {
		t.Error("Check = nil after the subscription was deleted, want an error")
	}
}

func TestConnectionRecoversFromARestart(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	first := pstest.NewServerWithAddress("127.0.0.1:0")
	config := fakeConfig(first)
	n := open(t, config)
	stopServer(t, first)
	if err := n.Publish(ctx, []eventqueue.Notification{notification(1)}); err == nil {
		t.Error("Publish to a server that is down = nil, want an error")
	}

	second := pstest.NewServerWithAddress(first.Addr)
	t.Cleanup(func() { stopServer(t, second) })
	for state := n.connection.clients().conn.GetState(); state != connectivity.Ready; state = n.connection.clients().conn.GetState() {
		n.connection.clients().conn.Connect() // does nothing unless the connection idles
		if !n.connection.clients().conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is %v within %v, want it ready", state, maxWait)
		}
	}
	// The new server knows neither topic nor subscription.
	if err := n.Publish(ctx, []eventqueue.Notification{notification(2)}); status.Code(err) != codes.NotFound {
		t.Errorf("the first Publish after the restart = %v, want NotFound", err)
	}
	if err := n.Publish(ctx, []eventqueue.Notification{notification(3)}); err != nil {
		t.Fatalf("the second Publish after the restart = %v, want nil", err)
	}
	if got := pull(t, n, 10); len(got) != 1 || got[0].Event != 3 {
		t.Errorf("pulled %+v after the restart, want event 3", got)
	}
}
