package pubsubnotify

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"

	"eventsv2/eventqueue"
)

// maxWait is how long a test waits for what must happen.
const maxWait = 2 * time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// fakeServer starts the client library's fake on loopback and stops it, with all
// its goroutines, when the test ends.
func fakeServer(t *testing.T, options ...pstest.ServerReactorOption) *pstest.Server {
	t.Helper()
	server := pstest.NewServerWithAddress("127.0.0.1:0", options...)
	t.Cleanup(func() { stopServer(t, server) })
	return server
}

func stopServer(t *testing.T, server *pstest.Server) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Errorf("close the fake server: %v", err)
	}
	server.Wait()
}

func fakeConfig(server *pstest.Server) Config {
	return Config{
		ProjectID:    "project",
		Topic:        "topic",
		Subscription: "subscription",
		Create:       true,
		EmulatorHost: server.Addr,
	}
}

func open(t *testing.T, config Config) *Notifier {
	t.Helper()
	n, err := New(testContext(t), config)
	if err != nil {
		t.Fatalf("New = %v, want a notifier", err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	})
	return n
}

// seed puts a topic and a subscription into a server without the package's help.
func seed(t *testing.T, server *pstest.Server, subscription *pubsubpb.Subscription) {
	t.Helper()
	ctx := testContext(t)
	if _, err := server.GServer.CreateTopic(ctx, &pubsubpb.Topic{Name: subscription.GetTopic()}); err != nil {
		t.Fatalf("create the topic: %v", err)
	}
	if _, err := server.GServer.CreateSubscription(ctx, subscription); err != nil {
		t.Fatalf("create the subscription: %v", err)
	}
}

// reaction answers the calls of one method in the place of the fake while it is
// armed, and counts them always.
type reaction struct {
	armed  atomic.Bool
	calls  atomic.Int64
	answer func() (any, error)
}

func (r *reaction) React(any) (bool, any, error) {
	r.calls.Add(1)
	if !r.armed.Load() {
		return false, nil, nil
	}
	answer, err := r.answer()
	return true, answer, err
}

func notification(id int64) eventqueue.Notification {
	return eventqueue.Notification{Event: eventqueue.EventID(id), Canvas: eventqueue.CanvasID{1, 2, 3}}
}

// pull waits for the first notifications.
func pull(t *testing.T, n *Notifier, max int) []eventqueue.Delivery {
	t.Helper()
	ctx := testContext(t)
	for {
		deliveries, err := n.Pull(ctx, max)
		if err != nil {
			t.Fatalf("Pull = %v, want deliveries", err)
		}
		if len(deliveries) > 0 {
			return deliveries
		}
	}
}
