package pubsubnotify

import (
	"context"
	"fmt"
	"math"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/option"
	gtransport "google.golang.org/api/transport/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
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

	// reconnectMax is the longest pause between two attempts to connect.
	reconnectMax = time.Second

	// connectTimeout bounds one attempt to connect.
	connectTimeout = 5 * time.Second

	// keepaliveTime is the shortest interval that servers permit by default. They close
	// a connection that pings more often.
	keepaliveTime = 5 * time.Minute

	// keepaliveTimeout is how long sent data may go without an answer before the
	// connection counts as dead.
	keepaliveTimeout = 10 * time.Second
)

// clients are the clients of both halves of the service, on one connection.
type clients struct {
	conn          *grpc.ClientConn
	topics        *pubsub.TopicAdminClient
	subscriptions *pubsub.SubscriptionAdminClient
}

// connect makes the clients. The first call opens the connection. connect does not
// use the library's dial function, which would read PUBSUB_EMULATOR_HOST from the
// environment.
func connect(ctx context.Context, c Config) (*clients, error) {
	conn, err := dial(ctx, c)
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

func dial(ctx context.Context, c Config) (*grpc.ClientConn, error) {
	options := []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectMax},
			MinConnectTimeout: connectTimeout,
		})),
		option.WithGRPCDialOption(grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout,
		})),
		// Only Pub/Sub limits the size of a forged message. If the client refused an
		// answer for its size, every further pull would fail in the same way.
		option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32))),
	}
	if c.EmulatorHost != "" {
		options = append(options,
			option.WithEndpoint(c.EmulatorHost),
			option.WithoutAuthentication(),
			option.WithTelemetryDisabled(),
			option.WithGRPCDialOption(grpc.WithNoProxy()))
		return gtransport.DialInsecure(ctx, append(options, c.ClientOptions...)...)
	}
	options = append(options,
		option.WithEndpoint("pubsub.googleapis.com:443"),
		option.WithScopes(pubsub.DefaultAuthScopes()...))
	return gtransport.Dial(ctx, append(options, c.ClientOptions...)...)
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
