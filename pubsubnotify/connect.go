package pubsubnotify

import (
	"context"
	"fmt"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	"google.golang.org/grpc"

	"eventsv2/internal/pubsubdial"
)

const (
	// callTimeout bounds a call whose ctx has no deadline.
	callTimeout = 10 * time.Second

	// pullTimeout bounds one request for notifications. An emulator ends it about a
	// second earlier if there are none. For that long, the service may also still deliver
	// messages to a program that was killed.
	pullTimeout = 5 * time.Second

	// atOnceTimeout bounds a request that need not wait for notifications.
	atOnceTimeout = 2 * time.Second

	// lastPullTakes bounds a pull whose caller has gone, including the requeue of its
	// messages.
	lastPullTakes = pullTimeout + atOnceTimeout
)

// clients are the clients of both halves of the service, on one connection.
type clients struct {
	conn          *grpc.ClientConn
	topics        *pubsub.TopicAdminClient
	subscriptions *pubsub.SubscriptionAdminClient
}

// connect makes the clients. The first call opens the connection.
func connect(ctx context.Context, c Config) (*clients, error) {
	conn, err := pubsubdial.Dial(ctx, c.EmulatorHost, c.ClientOptions)
	if err != nil {
		return nil, fmt.Errorf("connect to Pub/Sub for project %s: %w", c.ProjectID, err)
	}
	topics, err := pubsub.NewTopicAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		_ = conn.Close() // the error that matters is the other one
		return nil, fmt.Errorf("make the Pub/Sub topic client for project %s: %w", c.ProjectID, err)
	}
	subscriptions, err := pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("make the Pub/Sub subscription client for project %s: %w", c.ProjectID, err)
	}
	withoutRetries(topics.CallOptions, subscriptions.CallOptions)
	return &clients{conn: conn, topics: topics, subscriptions: subscriptions}, nil
}

// withoutRetries replaces the library's retries, which continue for a minute or until the
// deadline. An emitter needs the error at once.
func withoutRetries(topics *pubsub.TopicAdminCallOptions, subscriptions *pubsub.SubscriptionAdminCallOptions) {
	once := []gax.CallOption{gax.WithTimeout(callTimeout)}
	topics.CreateTopic = once
	topics.GetTopic = once
	topics.Publish = once
	subscriptions.CreateSubscription = once
	subscriptions.GetSubscription = once
	subscriptions.DeleteSubscription = once
	subscriptions.Acknowledge = once
	subscriptions.ModifyAckDeadline = once
	subscriptions.Pull = nil // request sets the deadline
}
