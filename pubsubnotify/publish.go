package pubsubnotify

import (
	"context"
	"fmt"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"eventsv2/eventqueue"
)

// Publish sends the notifications in one request and blocks until Pub/Sub has
// stored them, at most until ctx ends, or for ten seconds when ctx has no
// deadline. It does not retry: an error, after which any of them may be out or
// not, comes as soon as Pub/Sub has failed. More than eventqueue.MaxPublish
// notifications, or one with an event id that is not positive, are refused
// before anything is sent.
func (n *Notifier) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	if len(notifications) == 0 {
		return nil
	}
	// The limit of 10 MB per request needs no care: 1,000 of these messages have
	// less than half a megabyte, since encode bounds each.
	if count := len(notifications); count > eventqueue.MaxPublish {
		return fmt.Errorf("publish %d notifications: the limit is %d in one call; split them", count, eventqueue.MaxPublish)
	}
	messages, err := encode(notifications)
	if err != nil {
		return err
	}
	clients := n.connection.clients()
	if _, err := clients.topics.Publish(ctx, &pubsubpb.PublishRequest{Topic: n.topic, Messages: messages}); err != nil {
		return n.failed(ctx, clients, fmt.Sprintf("publish %d notifications to %s", len(notifications), n.topic), rolePublisher, err)
	}
	return nil
}
