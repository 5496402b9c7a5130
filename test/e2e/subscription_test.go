package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"eventsv2/test/pubsubproxy"
	"eventsv2/test/testenv"
)

// TestMessagesOfASubscriptionReachTheirTargetOnce, through workers as they are deployed, although the first one is killed after its
// commits and before any acknowledgement.
func TestMessagesOfASubscriptionReachTheirTargetOnce(t *testing.T) {
	t.Parallel()
	ctx, emulator := testenv.Context(t), testenv.EmulatorHost(t)
	conn, err := grpc.NewClient("passthrough:///"+emulator, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	topics, err := pubsub.NewTopicAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	subscriptions, err := pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	project := fmt.Sprintf("projects/shop-%x", rand.Uint64()) //nolint:gosec // no secret
	for _, id := range []string{"orders", "refused"} {
		if _, err := topics.CreateTopic(ctx, &pubsubpb.Topic{Name: project + "/topics/" + id}); err != nil {
			t.Fatal(err)
		}
	}
	subscription := &pubsubpb.Subscription{Name: project + "/subscriptions/orders", Topic: project + "/topics/orders",
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: project + "/topics/refused", MaxDeliveryAttempts: 20}}
	if _, err := subscriptions.CreateSubscription(ctx, subscription); err != nil {
		t.Fatal(err)
	}

	r := newPostgresRig(t, "build")
	handlers, err := os.ReadFile(r.environment["HANDLERS_FILE"])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "handlers.yaml")
	write := func(name string) {
		text := fmt.Sprintf("%ssubscriptions:\n  - {subscription: %s, canvas: %s, module: WORKER, modifier: _, name: build}\n", handlers, name, canvas)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("orders")
	if status, output := r.runWords([]string{"worker", "check", path}, ""); status == 0 || !strings.Contains(output, `subscription "orders": give its whole name`) {
		t.Errorf("worker check ended with %d:\n%s", status, output)
	}
	write(project + "/subscriptions/missing")
	environment := map[string]string{"HANDLERS_FILE": path, "PUBSUB_EMULATOR_HOST": emulator, "RETAIN_HISTORY": "true"}
	if refused := r.start("worker", environment); refused.wait() == 0 || !strings.Contains(refused.text(), "it does not exist: correct its name") {
		t.Errorf("without its subscription the worker says:\n%s", refused.text())
	}
	write(subscription.Name)
	proxy, err := pubsubproxy.Open(ctx, emulator)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	proxy.Set("Acknowledge", pubsubproxy.Hang)
	const messages = 12
	for n := range messages {
		if _, err := topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: subscription.Topic,
			Messages: []*pubsubpb.PubsubMessage{{Data: fmt.Appendf(nil, `{ "n": %d }`, n)}}}); err != nil {
			t.Fatal(err)
		}
	}
	environment["PUBSUB_EMULATOR_HOST"] = proxy.Address()
	first := r.start("worker", environment)
	// It waits for the answer to its first acknowledgement, so the messages of one pull have arrived.
	testenv.Eventually(t, "events have run, and their messages are not acknowledged", func() bool {
		return proxy.Calls("Acknowledge") > 0 && one[int](r, `SELECT count(*) FROM event_log`) > 0
	})
	first.Kill()

	environment["PUBSUB_EMULATOR_HOST"] = emulator
	second := r.start("worker", environment)
	second.await("a message has come again, and emits nothing")
	seen := map[string]bool{}
	for _, request := range r.target.await(t, messages) {
		if request.name != "build" || seen[request.body] {
			t.Errorf("the target got %s %s once more than it should", request.name, request.body)
		}
		seen[request.body] = true
	}
	r.awaitSQL("all have ended, each once", `SELECT count(*) = 12 AND count(DISTINCT value) = 12 FROM event_log WHERE status = 'COMPLETED'`)
	if status := second.terminate(); status != 0 {
		t.Errorf("the worker ended with %d after SIGTERM", status)
	}
}
