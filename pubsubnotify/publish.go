package pubsubnotify

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"eventsv2/eventqueue"
)

// Publish sends the notifications in one request and blocks until Pub/Sub has stored
// them, at most until ctx ends, or for ten seconds if ctx has no deadline. It does not
// retry. After an error each notification may have been published or not. Publish refuses
// more than eventqueue.MaxPublish notifications, and event ids that are not positive,
// before it sends anything.
func (n *Notifier) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	if len(notifications) == 0 {
		return nil
	}
	// A request cannot reach Pub/Sub's limit of 10 MB: encode bounds each message, so
	// 1,000 of them have less than half a megabyte.
	if count := len(notifications); count > eventqueue.MaxPublish {
		return fmt.Errorf("publish %d notifications: the limit is %d in one call; split them", count, eventqueue.MaxPublish)
	}
	messages, err := encode(notifications)
	if err != nil {
		return err
	}
	n.foreign.mark(messages)
	if err := n.subscribed(ctx); err != nil {
		return fmt.Errorf("publish %d notifications: %w", len(notifications), err)
	}
	clients := n.connection.clients()
	if _, err := clients.topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: n.topic, Messages: messages}); err != nil {
		return n.failed(ctx, clients, fmt.Sprintf("publish %d notifications to %s", len(notifications), n.topic), rolePublisher, err)
	}
	return nil
}
