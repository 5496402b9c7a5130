package pubsubnotify

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	// retention is how long Pub/Sub keeps a notification that is not pulled.
	retention = 7 * 24 * time.Hour
)

// resources are the topic and the subscription as they were found; nil if missing.
type resources struct {
	topic        *pubsubpb.Topic
	subscription *pubsubpb.Subscription
	// orphaned means that the subscription exists but its topic was deleted, which makes
	// the subscription useless.
	orphaned bool
}

func (r *resources) incomplete() bool { return r.topic == nil || r.subscription == nil }

func lookUp(ctx context.Context, config Config, clients *clients) (*resources, error) {
	found := &resources{}
	topic, err := clients.topics.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: config.topicPath()})
	switch status.Code(err) {
	case codes.OK:
		found.topic = topic
	case codes.NotFound:
	default:
		return nil, explain(ctx, config, "read topic "+config.topicPath(), roleViewer, err)
	}
	subscription, err := clients.subscriptions.GetSubscription(ctx,
		&pubsubpb.GetSubscriptionRequest{Subscription: config.subscriptionPath()})
	switch status.Code(err) {
	case codes.OK:
		if found.orphaned = subscription.GetTopic() == deletedTopic; !found.orphaned {
			found.subscription = subscription
		}
	case codes.NotFound:
	default:
		return nil, explain(ctx, config, "read subscription "+config.subscriptionPath(), roleViewer, err)
	}
	return found, nil
}

// deletedTopic is the topic of a subscription whose topic was deleted. Such a
// subscription stays empty for ever, even if a topic of the same name is made.
const deletedTopic = "_deleted-topic_"

// create creates the missing resources, and replaces a subscription that has lost its
// topic. If another worker was faster, it uses the resource of that worker; its settings
// are checked as well.
func (r *resources) create(ctx context.Context, config Config, clients *clients) error {
	if r.topic == nil {
		_, err := clients.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: config.topicPath()})
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return explain(ctx, config, "create topic "+config.topicPath(), roleEditor, err)
		}
	}
	if r.orphaned {
		// Query once more right before deleting it: another worker may have replaced it.
		found, err := lookUp(ctx, config, clients)
		if err != nil {
			return err
		}
		r.subscription, r.orphaned = found.subscription, found.orphaned
	}
	if r.orphaned {
		err := clients.subscriptions.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: config.subscriptionPath()})
		if err != nil && status.Code(err) != codes.NotFound {
			return explain(ctx, config, "replace subscription "+config.subscriptionPath()+", whose topic was deleted", roleEditor, err)
		}
	}
	if r.subscription == nil {
		_, err := clients.subscriptions.CreateSubscription(ctx, wantedSubscription(config))
		if err != nil && status.Code(err) != codes.AlreadyExists {
			return explain(ctx, config, "create subscription "+config.subscriptionPath(), roleEditor, err)
		}
	}
	found, err := lookUp(ctx, config, clients)
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

// missing returns the error that names the missing resources and how to create them.
func (r *resources) missing(config Config) error {
	var names, commands []string
	if r.topic == nil {
		names = append(names, "topic "+config.topicPath())
		commands = append(commands, createTopicCommand(config))
	}
	if r.subscription == nil {
		names = append(names, "subscription "+config.subscriptionPath())
		if r.orphaned {
			names[len(names)-1] += " with a topic (its own was deleted)"
			commands = append(commands, recreateCommand(config))
		} else {
			commands = append(commands, createSubscriptionCommand(config))
		}
	}
	return &Error{text: fmt.Sprintf("pub/sub has no %s: set PUBSUB_CREATE=true to have it made, or run\n  %s",
		strings.Join(names, " and no "), strings.Join(commands, "\n  ")), advice: adviceGone}
}

func createTopicCommand(config Config) string {
	return fmt.Sprintf("gcloud pubsub topics create %s --project=%s", config.Topic, config.ProjectID)
}

func createSubscriptionCommand(config Config) string {
	return fmt.Sprintf("gcloud pubsub subscriptions create %s --project=%s --topic=%s --ack-deadline=60 --message-retention-duration=7d --expiration-period=never",
		config.Subscription, config.ProjectID, config.Topic)
}

func recreateCommand(config Config) string {
	return fmt.Sprintf("gcloud pubsub subscriptions delete %s --project=%s && %s",
		config.Subscription, config.ProjectID, createSubscriptionCommand(config))
}

// Error is the error of a call of this package. Its text says what to do, and names the
// resources.
type Error struct {
	text   string
	advice string
	err    error
}

func (e *Error) Error() string { return e.text }

// Advice returns the result of the function Advice for this error.
func (e *Error) Advice() string { return e.advice }

// Unwrap returns the error of Pub/Sub, or of the caller's context.
func (e *Error) Unwrap() error { return e.err }

// Timeout reports whether Pub/Sub has not answered.
func (e *Error) Timeout() bool {
	return status.Code(e.err) == codes.DeadlineExceeded || errors.Is(e.err, context.DeadlineExceeded)
}

// Advice says in a few words what is wrong with Pub/Sub and what to do about it. It names
// no resource, so it may be shown to anybody. For joined errors it is the advice for all
// of them.
func Advice(err error) string {
	var said []string
	for _, one := range parts(err) {
		var failed *Error
		text := "the reason is in the log"
		if errors.As(one, &failed) {
			text = failed.advice
		}
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; ")
}

// parts returns the errors that were joined, even if the joined error was wrapped.
func parts(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if joined, is := e.(interface{ Unwrap() []error }); is {
			var all []error
			for _, one := range joined.Unwrap() {
				all = append(all, parts(one)...)
			}
			return all
		}
	}
	return []error{err}
}

// explain returns the error's text, followed by what to do about it. right is the role
// that the action needs.
func explain(ctx context.Context, config Config, action, right string, err error) error {
	code := status.Code(err)
	if cause := ctx.Err(); cause != nil {
		if err = cause; !errors.Is(cause, context.DeadlineExceeded) {
			return fmt.Errorf("%s: %w", action, cause)
		}
		code = codes.DeadlineExceeded
	}
	where, what, advice := "Google Cloud Pub/Sub", "", "it refuses a call"
	if config.EmulatorHost != "" {
		where = "the Pub/Sub emulator at " + config.EmulatorHost
	}
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded:
		what = ": " + where + " does not answer; check that it runs and can be reached from here"
		advice = "it does not answer: check that it runs and can be reached"
	case codes.PermissionDenied:
		what = ": the service account lacks a right: grant it " + right + " in project " + config.ProjectID
		advice = "a right is missing: grant " + right
	case codes.Unauthenticated:
		what = ": give the process credentials of a service account of project " + config.ProjectID
		advice = "it does not know the program: give it credentials"
	case codes.NotFound:
		what = ": the topic or the subscription is gone; set PUBSUB_CREATE=true to have both made again, or run " +
			createTopicCommand(config) + " and " + recreateCommand(config)
		advice = adviceGone
	case codes.ResourceExhausted:
		what = ": a quota of project " + config.ProjectID + " is exhausted; raise it (gcloud console, IAM, Quotas: Pub/Sub)"
		advice = "a quota is exhausted: raise it"
	default: // there is nothing to add
	}
	return &Error{fmt.Sprintf("%s%s: %v", action, what, err), advice, err}
}

const adviceGone = "the topic or the subscription is gone: have them made again"

// The roles that calls need.
const (
	rolePublisher  = "roles/pubsub.publisher"
	roleSubscriber = "roles/pubsub.subscriber"
	roleViewer     = "roles/pubsub.viewer"
	roleEditor     = "roles/pubsub.editor"
)
