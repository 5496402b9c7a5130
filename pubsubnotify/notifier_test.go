package pubsubnotify

import (
	"net"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
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

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	config := fakeConfig(server)
	config.Create = false
	_, err := New(testContext(t), config)
	if err == nil {
		t.Fatal("New = nil error, want one")
	}
	for _, want := range []string{"topic projects/project/topics/topic", "subscription projects/project/subscriptions/subscription",
		"PUBSUB_CREATE=true", "gcloud pubsub topics create", "gcloud pubsub subscriptions create"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to mention %q", err, want)
		}
	}
	seed(t, server, wantedSubscription(config))
	open(t, config)
}

func TestNewSaysThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	host := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatalf("close the listener: %v", err)
	}
	_, err = New(testContext(t), Config{ProjectID: "project", Topic: "topic", Subscription: "subscription", EmulatorHost: host})
	if err == nil || !strings.Contains(err.Error(), host+" does not answer") {
		t.Errorf("New = %v, want an error that says that %s does not answer", err, host)
	}
}

func TestManyWorkersCreateAtOnce(t *testing.T) {
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
					if err := n.Check(ctx); err != nil {
						return err
					}
					return n.Close()
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

func TestTheConnectionRecoversFromARestart(t *testing.T) {
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
	for state := n.clients.conn.GetState(); state != connectivity.Ready; state = n.clients.conn.GetState() {
		n.clients.conn.Connect() // does nothing unless the connection idles
		if !n.clients.conn.WaitForStateChange(ctx, state) {
			t.Fatalf("the connection is %v within %v, want it ready", state, patience)
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
