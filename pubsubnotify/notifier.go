package pubsubnotify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	connection   connection
	topic        string // full name
	subscription string // full name
	undecodable  atomic.Int64
	fit          atomic.Bool // topic and subscription have been seen to be fit
	restoring    sync.Mutex  // held by the one call that makes what has gone
	pulls        sync.WaitGroup
	pullSlot     pullSlot
}

// The interfaces that a Notifier implements.
var (
	_ eventqueue.Notifier       = (*Notifier)(nil)
	_ eventqueue.RemoteReceiver = (*Notifier)(nil)
)

// startTakes bounds what New waits for Pub/Sub. A program that works without it
// must not seem to hang.
const startTakes = 5 * time.Second

// New makes a Notifier and checks the topic and the subscription; with
// Config.Create it makes what is missing. It blocks for five seconds at most. It
// returns an error when config is wrong, and when the topic or the subscription has
// settings that would lose or delay events; the error says what to do.
//
// What New cannot find out (Pub/Sub does not answer, something is missing, the role
// may not read it) is no error: it is logged, and Attend continues to check. Until Pub/Sub
// can be used the calls of the Notifier fail.
func New(ctx context.Context, config Config) (*Notifier, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	n, err := connected(ctx, config.withDefaults())
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, startTakes)
	defer cancel()
	switch err := n.prepare(looking); {
	case err == nil:
	case ctx.Err() != nil, isUnfit(err):
		_ = n.connection.close() // the error that matters is the other one
		return nil, err
	default:
		n.logger.Warn("Pub/Sub cannot be used yet; it will be as soon as that is possible", zap.Error(err))
	}
	return n, nil
}

// connected makes a Notifier that has checked nothing yet.
func connected(ctx context.Context, config Config) (*Notifier, error) {
	clients, err := connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return newNotifier(config, clients), nil
}

func newNotifier(config Config, clients *clients) *Notifier {
	n := &Notifier{
		config:       config,
		logger:       config.Logger,
		topic:        config.topicPath(),
		subscription: config.subscriptionPath(),
		pullSlot:     newPullSlot(config),
	}
	n.connection.open(config, clients)
	return n
}

// prepare makes sure that topic and subscription exist and are usable, and records it
// when they are.
func (n *Notifier) prepare(ctx context.Context) error {
	clients := n.connection.clients()
	err := prepare(ctx, n.config, clients)
	if unanswered(ctx, err) {
		n.connection.redial(clients)
	}
	if err == nil {
		n.fit.Store(true)
	}
	return err
}

func prepare(ctx context.Context, config Config, clients *clients) error {
	found, err := lookUp(ctx, config, clients)
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

// Attend implements eventqueue.RemoteReceiver: it checks the topic and the subscription
// until they have been seen to be fit, and returns nil then, or when ctx ends. It
// returns an error when they have settings that would lose or delay events, the
// same as New.
func (n *Notifier) Attend(ctx context.Context) error {
	for wait := checkEvery; !n.fit.Load(); wait = min(2*wait, checkSeldom) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		looking, cancel := context.WithTimeout(ctx, startTakes)
		err := n.prepare(looking)
		cancel()
		switch {
		case err == nil:
			n.logger.Info("Pub/Sub can be used: topic and subscription are fit")
		case isUnfit(err):
			return err
		case Unreachable(err):
			wait = checkEvery / 2 // it may be back at any time
		}
	}
	return nil
}

// How often Attend checks: at first, and after many checks that failed.
const (
	checkEvery  = 2 * time.Second
	checkSeldom = 30 * time.Second
)

// failed turns the error of a call on some clients into what its caller gets, which
// says what to do. The end of ctx, which callers ask for with errors.Is, takes the
// place of the status that gRPC makes of it. When topic or subscription have gone,
// as they do when an emulator is restarted, and Config.Create allows it, they are
// made again, so that the next call succeeds.
func (n *Notifier) failed(ctx context.Context, clients *clients, action, right string, err error) error {
	if unanswered(ctx, err) {
		n.connection.redial(clients)
	}
	explained := explain(ctx, n.config, action, right, err)
	if ctx.Err() != nil || status.Code(err) != codes.NotFound {
		return explained
	}
	return n.restore(ctx, explained)
}

// restore makes topic and subscription again, if Config.Create allows it, and
// returns why that was necessary.
func (n *Notifier) restore(ctx context.Context, why error) error {
	if !n.config.Create || !n.restoring.TryLock() {
		return why
	}
	defer n.restoring.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTakes)
	defer cancel()
	if err := n.prepare(ctx); err != nil {
		return errors.Join(why, err)
	}
	n.logger.Warn("topic or subscription was gone and has been made again",
		zap.String("topic", n.topic), zap.String("subscription", n.subscription))
	return why
}

// Check reports whether the subscription can be reached and still has its topic, and
// says what to do if not. A role that may not look at it is no error: pulling needs
// no such right. It costs one call, which blocks at most until ctx ends, or for ten
// seconds when ctx has no deadline. With Config.Create a subscription that has lost
// its topic is replaced.
func (n *Notifier) Check(ctx context.Context) error {
	clients := n.connection.clients()
	subscription, err := clients.subscriptions.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: n.subscription})
	switch {
	case status.Code(err) == codes.PermissionDenied:
		return nil
	case err != nil:
		return n.failed(ctx, clients, "check Pub/Sub subscription "+n.subscription, roleViewer, err)
	case subscription.GetTopic() == n.topic:
		return nil
	}
	remedy := "run\n  " + recreateCommand(n.config)
	if subscription.GetTopic() == deletedTopic { // the topic may have been made again, or not
		remedy = "set PUBSUB_CREATE=true to have it made again, or run\n  " + createTopicCommand(n.config) + "\n  " + recreateCommand(n.config)
	}
	err = &Error{text: fmt.Sprintf("check Pub/Sub subscription %s: its topic is %s instead of %s: %s",
		n.subscription, subscription.GetTopic(), n.topic, remedy), advice: "the subscription has lost its topic: have both made again"}
	if subscription.GetTopic() == deletedTopic {
		return n.restore(ctx, err)
	}
	return err
}

// Unreachable reports whether an error of this package means that Pub/Sub does not
// answer, rather than that something is wrong with what was asked of it.
func Unreachable(err error) bool {
	if err == nil {
		return false
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// unanswered reports whether a call ended because its time was over.
func unanswered(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(ctx.Err(), context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded)
}

// Undecodable is the number of messages that were no notifications and were
// therefore acknowledged and passed over since New.
func (n *Notifier) Undecodable() int64 { return n.undecodable.Load() }

// Close waits for pulls that were cut off, for some seconds at most, and closes
// the connection. Call it when no other method is running.
func (n *Notifier) Close() error {
	n.pulls.Wait()
	if err := n.connection.close(); err != nil {
		return fmt.Errorf("close the Pub/Sub connection: %w", err)
	}
	return nil
}
