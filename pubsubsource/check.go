package pubsubsource

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// defaultRetained is how long a subscription retains messages that says nothing of it.
	defaultRetained = 7 * 24 * time.Hour
	// defaultAttempts is how often a subscription delivers a message that says nothing of it.
	defaultAttempts = 5
	// leastRetained is the least time for which a message that comes again emits nothing.
	leastRetained = 72 * time.Hour
)

// unfitError describes settings with which messages would be lost, or come for ever.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return e.text }

// settings are those of a subscription that is fit to be a source.
type settings struct {
	retained time.Duration // how long it retains messages
	ordered  bool          // the messages of an ordering key
	attempts int32         // to deliver a message, after which it goes to the dead-letter topic
}

// check asks whether the subscription is fit to be a source.
func (s *Source) check(ctx context.Context, client *pubsub.SubscriptionAdminClient) (settings, error) {
	name := s.config.Subscription
	found, err := client.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: name})
	if err != nil {
		return settings{}, s.explain("read the subscription "+name, err)
	}
	var problems []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	flags := s.config.flags()
	add(found.GetDetached() || found.GetTopic() == "_deleted-topic_", "it has no topic any more: make another one, and name that here")
	add(found.GetPushConfig().GetPushEndpoint() != "",
		`it pushes to %s: run gcloud pubsub subscriptions modify-push-config %s --push-endpoint="", or make it a source of webhooks`, short(found.GetPushConfig().GetPushEndpoint()), flags)
	add(found.GetBigqueryConfig().GetTable() != "" || found.GetCloudStorageConfig().GetBucket() != "" || found.GetBigtableConfig().GetTable() != "",
		"it writes its messages to a table or a bucket: make another one, and name that here")
	add(found.GetDeadLetterPolicy().GetDeadLetterTopic() == "",
		"it has no dead-letter topic, so that a message of which no event can be made would come again and again: run gcloud pubsub subscriptions update %s "+
			"--dead-letter-topic=TOPIC --max-delivery-attempts=20 --min-retry-delay=1s --max-retry-delay=600s", flags)
	if len(problems) > 0 {
		return settings{}, &unfitError{fmt.Sprintf("the subscription %s cannot be a source of events: %s", name, strings.Join(problems, "; "))}
	}
	are := settings{retained: defaultRetained, ordered: found.GetEnableMessageOrdering(), attempts: found.GetDeadLetterPolicy().GetMaxDeliveryAttempts()}
	if found.GetMessageRetentionDuration() != nil {
		are.retained = found.GetMessageRetentionDuration().AsDuration()
	}
	if are.attempts == 0 {
		are.attempts = defaultAttempts
	}
	return are, nil
}

// explain adds to an error of Pub/Sub what to do about it.
func (s *Source) explain(action string, err error) error {
	what := ""
	switch status.Code(err) {
	case codes.NotFound:
		what = ": it does not exist: correct its name, or run gcloud pubsub subscriptions create " + s.config.flags() +
			" --topic=TOPIC --dead-letter-topic=TOPIC --max-delivery-attempts=20 --min-retry-delay=1s --max-retry-delay=600s"
	case codes.PermissionDenied:
		what = ": the service account of this program lacks a right: grant it roles/pubsub.subscriber and roles/pubsub.viewer on the subscription"
	case codes.Unauthenticated:
		what = ": give this program credentials of a service account"
	case codes.Unavailable, codes.DeadlineExceeded:
		what = ": Pub/Sub does not answer; check that it can be reached from here"
	default: // there is nothing to add
	}
	return fmt.Errorf("%s%s: %w", action, what, err)
}

// lasts reports whether waiting cannot help.
func lasts(err error) bool {
	var unfit *unfitError
	if errors.As(err, &unfit) {
		return true
	}
	switch status.Code(err) {
	case codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
		return true
	default:
		return false
	}
}
