package pubsubnotify

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// ackDeadline is the lease of a pulled notification.
	ackDeadline = 60 * time.Second

	// retention is how long Pub/Sub keeps a notification that nobody pulls.
	retention = 7 * 24 * time.Hour
)

// resources are the topic and the subscription as they were found; nil is
// missing.
type resources struct {
	topic        *pubsubpb.Topic
	subscription *pubsubpb.Subscription
}

func (r *resources) incomplete() bool { return r.topic == nil || r.subscription == nil }

func look(ctx context.Context, config Config, clients *clients) (*resources, error) {
	found := &resources{}
	topic, err := clients.topics.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: config.topicPath()})
	switch status.Code(err) {
	case codes.OK:
		found.topic = topic
	case codes.NotFound:
	default:
		return nil, explain(ctx, config, "read topic "+config.topicPath(), err)
	}
	subscription, err := clients.subscriptions.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: config.subscriptionPath()})
	switch status.Code(err) {
	case codes.OK:
		found.subscription = subscription
	case codes.NotFound:
	default:
		return nil, explain(ctx, config, "read subscription "+config.subscriptionPath(), err)
	}
	return found, nil
}

// create makes what is missing. Another worker may be faster, so that what exists
// meanwhile is as good; its settings are checked like any other's.
func (r *resources) create(ctx context.Context, config Config, clients *clients) error {
	if r.topic == nil {
		_, err := clients.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: config.topicPath()})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return explain(ctx, config, "create topic "+config.topicPath(), err)
		}
	}
	if r.subscription == nil {
		_, err := clients.subscriptions.CreateSubscription(ctx, wantedSubscription(config))
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return explain(ctx, config, "create subscription "+config.subscriptionPath(), err)
		}
	}
	found, err := look(ctx, config, clients)
	if err != nil {
		return err
	}
	*r = *found
	return nil
}

func wantedSubscription(config Config) *pubsubpb.Subscription {
	return &pubsubpb.Subscription{
		Name:                     config.subscriptionPath(),
		Topic:                    config.topicPath(),
		AckDeadlineSeconds:       int32(ackDeadline / time.Second),
		MessageRetentionDuration: durationpb.New(retention),
		// A policy without a time to live means never; no policy means 31 days.
		ExpirationPolicy: &pubsubpb.ExpirationPolicy{},
	}
}

// missing says what is not there and how to make it.
func (r *resources) missing(config Config) error {
	var names, commands []string
	if r.topic == nil {
		names = append(names, "topic "+config.topicPath())
		commands = append(commands, createTopicCommand(config))
	}
	if r.subscription == nil {
		names = append(names, "subscription "+config.subscriptionPath())
		commands = append(commands, createSubscriptionCommand(config))
	}
	return fmt.Errorf("pub/sub has no %s: set PUBSUB_CREATE=true to have it made, or run\n  %s",
		strings.Join(names, " and no "), strings.Join(commands, "\n  "))
}

func createTopicCommand(config Config) string {
	return fmt.Sprintf("gcloud pubsub topics create %s --project=%s", config.Topic, config.ProjectID)
}

func createSubscriptionCommand(config Config) string {
	return fmt.Sprintf("gcloud pubsub subscriptions create %s --project=%s --topic=%s --ack-deadline=60 --message-retention-duration=7d --expiration-period=never",
		config.Subscription, config.ProjectID, config.Topic)
}

// explain adds what to do about an error of New to it.
func explain(ctx context.Context, config Config, action string, err error) error {
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", action, cause)
	}
	where, advice := "Google Cloud Pub/Sub", ""
	if config.EmulatorHost != "" {
		where = "the Pub/Sub emulator at " + config.EmulatorHost
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		advice = ": " + where + " does not answer; check that it runs and can be reached from here"
	case codes.PermissionDenied:
		advice = ": grant roles/pubsub.viewer beside roles/pubsub.publisher and roles/pubsub.subscriber (roles/pubsub.editor to create)"
	case codes.Unauthenticated:
		advice = ": give the process credentials of a service account of project " + config.ProjectID
	default: // the error says it all
	}
	return fmt.Errorf("%s%s: %w", action, advice, err)
}
