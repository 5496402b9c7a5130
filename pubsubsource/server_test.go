package pubsubsource_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"eventsv2/test/testenv"
)

// server has one subscription. It delivers all messages that it has in one pull, in their order, and again in the next one those that were
// given back, until that happened as often as its policy says. So what a source gives back can be told exactly.
type server struct {
	pubsubpb.UnimplementedSubscriberServer
	ordered  bool
	attempts int32
	address  string

	mu       sync.Mutex
	messages []*pubsubpb.ReceivedMessage // neither acknowledged nor dead
	leased   map[string]bool
	back     map[string]int // how often each was given back, by its data
}

// newServer has messages, whose data is their id.
func newServer(t *testing.T, ordered bool, messages ...*pubsubpb.PubsubMessage) *server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(testenv.Context(t), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{ordered: ordered, attempts: 3, address: listener.Addr().String(), leased: map[string]bool{}, back: map[string]int{}}
	for n, message := range messages {
		message.MessageId = fmt.Sprint("m", n)
		s.messages = append(s.messages, &pubsubpb.ReceivedMessage{AckId: message.MessageId, Message: message, DeliveryAttempt: 1})
	}
	calls := grpc.NewServer()
	pubsubpb.RegisterSubscriberServer(calls, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = calls.Serve(listener) // ends with Stop
	}()
	t.Cleanup(func() {
		calls.Stop()
		<-done
	})
	return s
}

func (s *server) GetSubscription(_ context.Context, r *pubsubpb.GetSubscriptionRequest) (*pubsubpb.Subscription, error) {
	return &pubsubpb.Subscription{Name: r.Subscription, Topic: "projects/p/topics/orders", EnableMessageOrdering: s.ordered,
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: "projects/p/topics/dead", MaxDeliveryAttempts: s.attempts}}, nil
}

func (s *server) Pull(context.Context, *pubsubpb.PullRequest) (*pubsubpb.PullResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := &pubsubpb.PullResponse{}
	for _, m := range s.messages {
		if !s.leased[m.AckId] {
			s.leased[m.AckId] = true
			answer.ReceivedMessages = append(answer.ReceivedMessages,
				&pubsubpb.ReceivedMessage{AckId: m.AckId, Message: m.Message, DeliveryAttempt: m.DeliveryAttempt})
		}
	}
	return answer, nil
}

func (s *server) Acknowledge(_ context.Context, r *pubsubpb.AcknowledgeRequest) (*emptypb.Empty, error) {
	s.end(r.AckIds, func(*pubsubpb.ReceivedMessage) bool { return true })
	return &emptypb.Empty{}, nil
}

func (s *server) ModifyAckDeadline(_ context.Context, r *pubsubpb.ModifyAckDeadlineRequest) (*emptypb.Empty, error) {
	if r.AckDeadlineSeconds == 0 {
		s.end(r.AckIds, func(m *pubsubpb.ReceivedMessage) (dead bool) {
			s.back[string(m.Message.Data)]++
			s.leased[m.AckId] = false
			m.DeliveryAttempt++
			return m.DeliveryAttempt > s.attempts
		})
	}
	return &emptypb.Empty{}, nil
}

// end removes those of some messages that are over.
func (s *server) end(ids []string, over func(m *pubsubpb.ReceivedMessage) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	some := map[string]bool{}
	for _, id := range ids {
		some[id] = true
	}
	var left []*pubsubpb.ReceivedMessage
	for _, m := range s.messages {
		if !some[m.AckId] || !over(m) {
			left = append(left, m)
		}
	}
	s.messages = left
}

// givenBack returns how often each message was given back, by its data, once every message is acknowledged or dead.
func (s *server) givenBack(t *testing.T) map[string]int {
	t.Helper()
	testenv.Eventually(t, "every message is acknowledged or dead", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.messages) == 0
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back
}

// times is how often a message was given back.
func (s *server) times(data string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.back[data]
}
