package pubsubnotify

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
)

// problem is one setting that would lose or delay events.
type problem struct {
	setting string
	value   string
	want    string
	fix     string
}

func (p problem) String() string {
	return fmt.Sprintf("%s is %s, and must be %s; run: %s", p.setting, p.value, p.want, p.fix)
}

// checkSettings returns one error that lists all wrong settings, so that all can be
// corrected before the next start.
func checkSettings(config Config, topic *pubsubpb.Topic, subscription *pubsubpb.Subscription) error {
	problems := append(topicProblems(config, topic), subscriptionProblems(config, subscription)...)
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return &unfitError{fmt.Sprintf("pub/sub subscription %s would lose or delay events:\n  %s",
		config.subscriptionPath(), strings.Join(lines, "\n  "))}
}

// unfitError describes wrong settings of the topic and the subscription. Unlike a missing
// topic or a server that does not answer, they have to be corrected by an operator, and
// events would be lost or late with them.
type unfitError struct{ text string }

func (e *unfitError) Error() string { return e.text }

func isUnfit(err error) bool {
	var unfit *unfitError
	return errors.As(err, &unfit)
}

func topicProblems(config Config, topic *pubsubpb.Topic) []problem {
	if !transforms(topic.GetMessageTransforms()) {
		return nil
	}
	return []problem{{"message_transforms of topic " + topic.GetName(), "set", "empty",
		fmt.Sprintf("gcloud pubsub topics update %s --project=%s --clear-message-transforms", config.Topic, config.ProjectID)}}
}

// subscriptionProblems checks all settings that decide who gets a message and when.
func subscriptionProblems(config Config, s *pubsubpb.Subscription) []problem {
	var problems []problem
	add := func(wrong bool, setting, value, want, fix string) {
		if wrong {
			problems = append(problems, problem{setting, value, want, fix})
		}
	}
	update := func(flag string) string {
		return fmt.Sprintf("gcloud pubsub subscriptions update %s --project=%s %s", config.Subscription, config.ProjectID, flag)
	}
	recreate := recreateCommand(config)
	pull := fmt.Sprintf(`gcloud pubsub subscriptions modify-push-config %s --project=%s --push-endpoint=""`,
		config.Subscription, config.ProjectID)

	add(s.GetTopic() != config.topicPath(), "topic", s.GetTopic(), config.topicPath(), recreate)
	add(s.GetDetached(), "detached", "true", "false", recreate)
	add(s.GetDeadLetterPolicy() != nil, "dead_letter_policy",
		fmt.Sprintf("%s after %d deliveries", s.GetDeadLetterPolicy().GetDeadLetterTopic(), s.GetDeadLetterPolicy().GetMaxDeliveryAttempts()),
		"unset", update("--clear-dead-letter-policy"))
	add(s.GetRetryPolicy() != nil, "retry_policy",
		fmt.Sprintf("%v to %v", s.GetRetryPolicy().GetMinimumBackoff().AsDuration(), s.GetRetryPolicy().GetMaximumBackoff().AsDuration()),
		"unset", update("--clear-retry-policy"))
	expires, expiration := expiry(config, s)
	add(expires, "expiration_policy.ttl", expiration, "never", update("--expiration-period=never"))
	lease := time.Duration(s.GetAckDeadlineSeconds()) * time.Second
	add(lease < ackDeadline, "ack_deadline_seconds", fmt.Sprint(s.GetAckDeadlineSeconds()), "at least 60", update("--ack-deadline=60"))
	tooShort, kept := retained(s)
	add(tooShort, "message_retention_duration", kept, "at least 7 days", update("--message-retention-duration=7d"))
	add(s.GetFilter() != "", "filter", fmt.Sprintf("%q", s.GetFilter()), "empty", recreate)
	add(s.GetEnableMessageOrdering(), "enable_message_ordering", "true", "false", recreate)
	add(s.GetEnableExactlyOnceDelivery(), "enable_exactly_once_delivery", "true", "false", update("--no-enable-exactly-once-delivery"))
	add(transforms(s.GetMessageTransforms()), "message_transforms", "set", "empty", update("--clear-message-transforms"))
	add(s.GetPushConfig().GetPushEndpoint() != "", "push_config.push_endpoint", s.GetPushConfig().GetPushEndpoint(), "empty", pull)
	add(s.GetBigqueryConfig().GetTable() != "", "bigquery_config.table", s.GetBigqueryConfig().GetTable(), "empty", update("--clear-bigquery-config"))
	add(s.GetCloudStorageConfig().GetBucket() != "", "cloud_storage_config.bucket", s.GetCloudStorageConfig().GetBucket(), "empty", update("--clear-cloud-storage-config"))
	add(s.GetBigtableConfig().GetTable() != "", "bigtable_config.table", s.GetBigtableConfig().GetTable(), "empty", recreate)
	return problems
}

// expiry reports whether the subscription is deleted when it is not used. Pub/Sub always
// returns a policy. Emulators return the policy that they were given, and without one
// their subscriptions never expire.
func expiry(config Config, s *pubsubpb.Subscription) (bool, string) {
	if s.GetExpirationPolicy() == nil {
		return config.EmulatorHost == "", "the default (31 days)"
	}
	ttl := s.GetExpirationPolicy().GetTtl().AsDuration()
	return ttl > 0, ttl.String()
}

// retained reports whether the subscription's retention is too short. Without a duration
// it is the default, which is long enough.
func retained(s *pubsubpb.Subscription) (bool, string) {
	if s.GetMessageRetentionDuration() == nil {
		return false, ""
	}
	kept := s.GetMessageRetentionDuration().AsDuration()
	return kept < retention, kept.String()
}

func transforms(all []*pubsubpb.MessageTransform) bool {
	for _, transform := range all {
		if !transform.GetDisabled() {
			return true
		}
	}
	return false
}
