package pubsubnotify

import (
	"context"
	"sync"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"eventsv2/eventqueue"
)

// Publisher is an eventqueue.Publisher on a topic, for programs that run no events. It
// needs the right to publish (roles/pubsub.publisher) and no other, and does not read the
// subscription. With Config.Create it creates topic and subscription, and needs
// roles/pubsub.editor. All methods are safe for concurrent use.
type Publisher struct {
	n       *Notifier
	stop    context.CancelFunc
	looking sync.WaitGroup
}

// The interface that a Publisher implements.
var _ eventqueue.Publisher = (*Publisher)(nil)

// NewPublisher makes a Publisher. It returns an error only if config is wrong. With
// Config.Create it blocks for five seconds at most. Without Config.Create it does not
// block; it checks the topic once, in the background, and logs a warning if the topic
// does not exist.
func NewPublisher(ctx context.Context, config Config) (*Publisher, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	n, err := connected(ctx, config.withDefaults())
	if err != nil {
		return nil, err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	p := &Publisher{n: n, stop: stop}
	if !config.Create {
		p.looking.Go(func() { p.checkOnce(background) })
		return p, nil
	}
	looking, cancel := context.WithTimeout(ctx, startTakes)
	defer cancel()
	if err := n.prepare(looking); err != nil {
		n.logger.Warn("could not create or check topic and subscription", zap.Error(err))
	}
	return p, nil
}

// checkOnce warns when notifications cannot be published, before the first of them.
func (p *Publisher) checkOnce(ctx context.Context) {
	looking, cancel := context.WithTimeout(ctx, startTakes)
	defer cancel()
	if err := p.Check(looking); err != nil && ctx.Err() == nil {
		p.n.logger.Warn("Pub/Sub cannot be used yet; trying again", zap.Error(err))
	}
}

// Publish is Notifier.Publish.
func (p *Publisher) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	return p.n.Publish(ctx, notifications)
}

// SetQueue is Notifier.SetQueue.
func (p *Publisher) SetQueue(identity string) { p.n.SetQueue(identity) }

// Check returns an error if Pub/Sub does not answer or the topic does not exist; the
// error says what to do. A role without the right to read the topic is no error. Check
// makes one call, and blocks as Notifier.Check does.
func (p *Publisher) Check(ctx context.Context) error {
	clients := p.n.connection.clients()
	_, err := clients.topics.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: p.n.topic})
	if err == nil || status.Code(err) == codes.PermissionDenied {
		return nil
	}
	return p.n.failed(ctx, clients, "check Pub/Sub topic "+p.n.topic, roleViewer, err)
}

// Close closes the connection. Call it when no other method is running.
func (p *Publisher) Close() error {
	p.stop()
	p.looking.Wait()
	return p.n.Close()
}
