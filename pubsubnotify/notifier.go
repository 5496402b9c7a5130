package pubsubnotify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
)

// Notifier is an eventqueue.Notifier on one topic and one subscription. All
// methods are safe for concurrent use. Close ends it.
type Notifier struct {
	config       Config
	logger       *zap.Logger
	clients      *clients
	topic        string // full name
	subscription string // full name
	undecodable  atomic.Int64
	restoring    sync.Mutex // held by the one call that makes what has gone
	pulls        sync.WaitGroup
	turn         turn
}

// The interface that this package exists for.
var _ eventqueue.Notifier = (*Notifier)(nil)

// New connects to Pub/Sub, makes the topic and the subscription if config says so
// and they are missing, and reads the settings of both. It blocks for a few calls
// of at most ten seconds each, and at most until ctx ends. It returns an error
// when config is wrong, when Pub/Sub cannot be reached, when the topic or the
// subscription is missing, and when one has settings that would lose or delay
// events; each says what to do.
func New(ctx context.Context, config Config) (*Notifier, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	clients, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := prepare(ctx, config, clients); err != nil {
		_ = clients.conn.Close() // the error that matters is the other one
		return nil, err
	}
	return newNotifier(config, clients), nil
}

// newNotifier trusts that topic and subscription are there and usable.
func newNotifier(config Config, clients *clients) *Notifier {
	return &Notifier{
		config:       config,
		logger:       config.Logger,
		clients:      clients,
		topic:        config.topicPath(),
		subscription: config.subscriptionPath(),
		turn:         newTurn(config),
	}
}

// prepare sees to it that topic and subscription are there and usable.
func prepare(ctx context.Context, config Config, clients *clients) error {
	found, err := look(ctx, config, clients)
	if err != nil {
		return err
	}
	if found.incomplete() && config.Create {
		if err := found.create(ctx, config, clients); err != nil {
			return err
		}
	}
	if found.incomplete() {
		return found.missing(config)
	}
	return checkSettings(config, found.topic, found.subscription)
}

// failed turns the error of a call into what its caller gets. The end of ctx,
// which callers ask for with errors.Is, takes the place of the status that gRPC
// makes of it. When topic or subscription have gone, as they do when an emulator
// is restarted, and Config.Create allows it, they are made again, so that the
// next call succeeds.
func (n *Notifier) failed(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil {
		return cause
	}
	if status.Code(err) != codes.NotFound || !n.config.Create || !n.restoring.TryLock() {
		return err
	}
	defer n.restoring.Unlock()
	if restoreErr := prepare(ctx, n.config, n.clients); restoreErr != nil {
		return errors.Join(err, restoreErr)
	}
	n.logger.Warn("topic or subscription was gone and has been made again",
		zap.String("topic", n.topic), zap.String("subscription", n.subscription))
	return err
}

// Check reports whether the subscription can be reached and still has its topic.
// It costs one call, which blocks at most until ctx ends, or for ten seconds when
// ctx has no deadline.
func (n *Notifier) Check(ctx context.Context) error {
	subscription, err := n.clients.subscriptions.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: n.subscription})
	if err != nil {
		return fmt.Errorf("check Pub/Sub subscription %s: %w", n.subscription, err)
	}
	if subscription.GetTopic() != n.topic {
		return fmt.Errorf("check Pub/Sub subscription %s: its topic is %s instead of %s; recreate it",
			n.subscription, subscription.GetTopic(), n.topic)
	}
	return nil
}

// Unreachable tells whether an error of this package means that Pub/Sub does not
// answer, rather than that something is wrong with what was asked of it.
func Unreachable(err error) bool {
	if err == nil {
		return false
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded
}

// Undecodable is the number of messages that were no notifications and were
// therefore acknowledged and passed over since New.
func (n *Notifier) Undecodable() int64 { return n.undecodable.Load() }

// Close waits for pulls that were cut off, for some seconds at most, and closes
// the connection. Call it when no other method is running.
func (n *Notifier) Close() error {
	n.pulls.Wait()
	if err := n.clients.conn.Close(); err != nil {
		return fmt.Errorf("close the Pub/Sub connection: %w", err)
	}
	return nil
}
