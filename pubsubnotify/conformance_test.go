package pubsubnotify

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/notifytest"
	"eventsv2/test/testenv"
)

func TestConformanceOfTheFakeServer(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, func(t *testing.T) notifytest.Harness {
		return notifytest.Harness{
			Notifier: open(t, fakeConfig(fakeServer(t))),
			ShortLeased: func(t *testing.T) eventqueue.Notifier {
				return openShortLeased(t, fakeConfig(fakeServer(t)))
			},
		}
	})
}

func TestConformanceOfTheEmulator(t *testing.T) {
	t.Parallel()
	host := testenv.EmulatorHost(t)
	project := "notify-" + uuid.NewString()
	var cases atomic.Int64
	config := func() Config {
		name := fmt.Sprintf("case-%d", cases.Add(1))
		return Config{ProjectID: project, Topic: name, Subscription: name, Create: true, EmulatorHost: host}
	}
	notifytest.Run(t, func(t *testing.T) notifytest.Harness {
		return notifytest.Harness{
			Notifier:    open(t, config()),
			ShortLeased: func(t *testing.T) eventqueue.Notifier { return openShortLeased(t, config()) },
			// The emulator counts in milliseconds.
			ClockError: 5 * time.Millisecond,
		}
	})
}

// openShortLeased opens a notifier with an ack deadline that New would refuse: the
// shortest that Pub/Sub allows.
func openShortLeased(t *testing.T, config Config) *Notifier {
	t.Helper()
	ctx := testContext(t)
	config = config.withDefaults()
	clients, err := connect(ctx, config)
	if err != nil {
		t.Fatalf("connect = %v, want clients", err)
	}
	n := newNotifier(config, clients)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	})
	if _, err := clients.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: n.topic}); err != nil {
		t.Fatalf("create the topic: %v", err)
	}
	subscription := wantedSubscription(config)
	subscription.AckDeadlineSeconds = 10
	if _, err := clients.subscriptions.CreateSubscription(ctx, subscription); err != nil {
		t.Fatalf("create the subscription: %v", err)
	}
	return n
}
