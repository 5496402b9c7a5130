package pubsubproxy_test

import (
	"context"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"eventsv2/test/pubsubproxy"
)

func TestFailingMethodFailsNoOther(t *testing.T) {
	t.Parallel()
	server := pstest.NewServer()
	defer func() { _ = server.Close() }() // nothing is left to lose
	proxy, err := pubsubproxy.Open(t.Context(), server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient(proxy.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the test is over
	publisher := pubsubpb.NewPublisherClient(conn)
	const topic = "projects/p/topics/bell"
	if _, err := publisher.CreateTopic(t.Context(), &pubsubpb.Topic{Name: topic}); err != nil {
		t.Fatal(err)
	}
	publish := func(ctx context.Context) codes.Code {
		_, err := publisher.Publish(ctx, &pubsubpb.PublishRequest{Topic: topic, Messages: []*pubsubpb.PubsubMessage{{Data: []byte("x")}}})
		return status.Code(err)
	}
	proxy.Set("Publish", pubsubproxy.First(1, pubsubproxy.Refuse(codes.PermissionDenied, "the role was revoked")))
	if first, second := publish(t.Context()), publish(t.Context()); first != codes.PermissionDenied || second != codes.OK {
		t.Errorf("two calls of which the first is refused: %s, %s", first, second)
	}
	for name, behaviour := range map[string]pubsubproxy.Behaviour{"hang": pubsubproxy.Hang, "lose the answer": pubsubproxy.LoseAnswer} {
		proxy.Set("Publish", behaviour)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if got := publish(ctx); got != codes.DeadlineExceeded {
			t.Errorf("%s: %s", name, got)
		}
		cancel()
		if _, err := publisher.GetTopic(t.Context(), &pubsubpb.GetTopicRequest{Topic: topic}); err != nil {
			t.Errorf("%s: another method fails: %v", name, err)
		}
	}
	proxy.Heal()
	if got := publish(t.Context()); got != codes.OK {
		t.Errorf("after it was healed: %s", got)
	}
	if n := proxy.Calls("Publish"); n < 3 { // those that ran out of time may not have come
		t.Errorf("%d calls of Publish were counted", n)
	}
}
