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
	fit          atomic.Bool // topic and subscription were found to have the right settings
	complete     atomic.Bool // topic and subscription were found, with whatever settings
	restoring    sync.Mutex  // held by the call that creates them again
	pulls        sync.WaitGroup
	pullSlot     pullSlot
	foreign      foreign
}

// The interfaces that a Notifier implements.
var (
	_ eventqueue.Notifier       = (*Notifier)(nil)
	_ eventqueue.RemoteReceiver = (*Notifier)(nil)
)

// startTakes bounds how long New waits for Pub/Sub. A program that can work without
// Pub/Sub must not seem to hang.
const startTakes = 5 * time.Second

// New makes a Notifier and checks the topic and the subscription. With Config.Create it
// creates them if they are missing. It blocks for five seconds at most. It returns an
// error if config is wrong, or if the topic or the subscription has settings that would
// lose or delay events; the error says what to do.
//
// If the check is not possible (Pub/Sub does not answer, something is missing, or the
// role may not read it), New logs that and returns no error. Attend then continues to
// check. Until Pub/Sub can be used, the calls of the Notifier fail.
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
		n.logger.Warn("Pub/Sub cannot be used yet; trying again", zap.Error(err))
	}
	return n, nil
}

// connected makes a Notifier and checks nothing.
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

// prepare makes sure that topic and subscription exist and have the right settings, and
// then sets fit.
func (n *Notifier) prepare(ctx context.Context) error {
	clients := n.connection.clients()
	err := prepare(ctx, n.config, clients)
	if unanswered(ctx, err) {
		n.connection.redial(clients)
	}
	if err == nil {
		n.fit.Store(true)
	}
	if err == nil || isUnfit(err) {
		n.complete.Store(true)
	}
	return err
}

// subscribed makes sure that topic and subscription exist before the first notification is published,
// if it is this program that creates them (Config.Create). At the start there may have been time for
// the topic only, and what is published to a topic without a subscription is lost without an error.
func (n *Notifier) subscribed(ctx context.Context) error {
	if !n.config.Create || n.complete.Load() {
		return nil
	}
	err := n.prepare(ctx)
	if status.Code(err) == codes.PermissionDenied { // then an administrator creates them
		n.complete.Store(true)
	}
	if n.complete.Load() {
		return nil
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

// Attend implements eventqueue.RemoteReceiver. It checks the topic and the subscription
// until it has found that their settings are right, and then returns nil. It also
// returns nil when ctx ends. If the settings would lose or delay events, it returns the
// same error as New.
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
			wait = checkEvery / 2 // Pub/Sub may be back at any time
		}
	}
	return nil
}

// The waits between the checks of Attend: at first, and after many failures.
const (
	checkEvery  = 2 * time.Second
	checkSeldom = 30 * time.Second
)

// failed turns the error of a call into the error for its caller, which says what to do.
// If ctx has ended, the error wraps that of ctx instead of gRPC's status, so that callers
// can use errors.Is. If topic or subscription no longer exist, as after the restart of an
// emulator, and Config.Create is set, failed creates them again, so that the next call
// succeeds.
func (n *Notifier) failed(ctx context.Context, clients *clients, action, right string, err error) error {
	if unanswered(ctx, err) {
		n.connection.redial(clients)
	}
	if status.Code(err) == codes.Canceled && n.connection.clients() != clients {
		// redial has closed the connection, because it did not answer.
		err = status.Error(codes.DeadlineExceeded, "the connection did not answer and was replaced")
	}
	explained := explain(ctx, n.config, action, right, err)
	if ctx.Err() != nil || status.Code(err) != codes.NotFound {
		return explained
	}
	return n.restore(ctx, explained)
}

// restore creates topic and subscription again if Config.Create is set, and returns the
// error that made it necessary.
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

// Check returns an error if the subscription cannot be reached or has lost its topic;
// the error says what to do. A role without the right to read the subscription is no
// error, since pulling does not need that right. Check makes one call. It blocks at most
// until ctx ends, or for ten seconds if ctx has no deadline. With Config.Create it
// replaces a subscription that has lost its topic.
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
	if subscription.GetTopic() == deletedTopic { // even if a topic of that name exists again
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
// answer, as opposed to an error in the request.
func Unreachable(err error) bool {
	if err == nil {
		return false
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)
}

// unanswered reports whether a call ended because it was not answered in time.
func unanswered(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(ctx.Err(), context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded)
}

// Undecodable returns how many messages since New were no notifications. They were
// acknowledged and ignored.
func (n *Notifier) Undecodable() int64 { return n.undecodable.Load() }

// Close waits for pulls that were cut off, for some seconds at most, and closes the
// connection. Call it when no other method is running.
func (n *Notifier) Close() error {
	n.pulls.Wait()
	if err := n.connection.close(); err != nil {
		return fmt.Errorf("close the Pub/Sub connection: %w", err)
	}
	return nil
}
