package pubsubnotify

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/protobuf/types/known/durationpb"
)

func realConfig() Config {
	return Config{ProjectID: "project", Topic: "topic", Subscription: "subscription"}
}

func TestExpectedSettingsPass(t *testing.T) {
	t.Parallel()
	config := realConfig()
	topic := &pubsubpb.Topic{Name: config.topicPath()}
	subscription := wantedSubscription(config)
	if err := checkSettings(config, topic, subscription); err != nil {
		t.Errorf("checkSettings of what New makes = %v, want nil", err)
	}
	// Pub/Sub answers with an empty push config and a disabled transform may stay.
	subscription.PushConfig = &pubsubpb.PushConfig{}
	subscription.MessageTransforms = []*pubsubpb.MessageTransform{{Disabled: true}}
	subscription.AckDeadlineSeconds = 600
	subscription.MessageRetentionDuration = durationpb.New(31 * 24 * time.Hour)
	if err := checkSettings(config, topic, subscription); err != nil {
		t.Errorf("checkSettings of harmless settings = %v, want nil", err)
	}
}

func TestSettingsThatLoseEventsAreRefused(t *testing.T) {
	t.Parallel()
	for setting, c := range map[string]struct {
		spoil func(*pubsubpb.Subscription)
		fix   string
	}{
		"topic":                         {func(s *pubsubpb.Subscription) { s.Topic = "projects/project/topics/other" }, "subscriptions delete"},
		"detached":                      {func(s *pubsubpb.Subscription) { s.Detached = true }, "subscriptions delete"},
		"dead_letter_policy":            {func(s *pubsubpb.Subscription) { s.DeadLetterPolicy = &pubsubpb.DeadLetterPolicy{} }, "--clear-dead-letter-policy"},
		"retry_policy":                  {func(s *pubsubpb.Subscription) { s.RetryPolicy = &pubsubpb.RetryPolicy{} }, "--clear-retry-policy"},
		"expiration_policy.ttl":         {func(s *pubsubpb.Subscription) { s.ExpirationPolicy = nil }, "--expiration-period=never"},
		"expiration_policy.ttl is 48h":  {func(s *pubsubpb.Subscription) { s.ExpirationPolicy.Ttl = durationpb.New(48 * time.Hour) }, "--expiration-period=never"},
		"ack_deadline_seconds is 59":    {func(s *pubsubpb.Subscription) { s.AckDeadlineSeconds = 59 }, "--ack-deadline=60"},
		"message_retention_duration":    {func(s *pubsubpb.Subscription) { s.MessageRetentionDuration = durationpb.New(retention - 1) }, "--message-retention-duration=7d"},
		"filter":                        {func(s *pubsubpb.Subscription) { s.Filter = `attributes:x` }, "subscriptions delete"},
		"enable_message_ordering":       {func(s *pubsubpb.Subscription) { s.EnableMessageOrdering = true }, "subscriptions delete"},
		"enable_exactly_once_delivery":  {func(s *pubsubpb.Subscription) { s.EnableExactlyOnceDelivery = true }, "--no-enable-exactly-once-delivery"},
		"message_transforms":            {func(s *pubsubpb.Subscription) { s.MessageTransforms = []*pubsubpb.MessageTransform{{}} }, "--clear-message-transforms"},
		"push_config.push_endpoint":     {func(s *pubsubpb.Subscription) { s.PushConfig = &pubsubpb.PushConfig{PushEndpoint: "https://x"} }, "modify-push-config"},
		"bigquery_config.table":         {func(s *pubsubpb.Subscription) { s.BigqueryConfig = &pubsubpb.BigQueryConfig{Table: "t"} }, "--clear-bigquery-config"},
		"cloud_storage_config.bucket":   {func(s *pubsubpb.Subscription) { s.CloudStorageConfig = &pubsubpb.CloudStorageConfig{Bucket: "b"} }, "--clear-cloud-storage-config"},
		"bigtable_config.table":         {func(s *pubsubpb.Subscription) { s.BigtableConfig = &pubsubpb.BigtableConfig{Table: "t"} }, "subscriptions delete"},
		"topic is _deleted-topic_, and": {func(s *pubsubpb.Subscription) { s.Topic = "_deleted-topic_" }, "subscriptions delete"},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			config := realConfig()
			subscription := wantedSubscription(config)
			c.spoil(subscription)
			err := checkSettings(config, &pubsubpb.Topic{Name: config.topicPath()}, subscription)
			if err == nil {
				t.Fatal("checkSettings = nil, want an error")
			}
			for _, want := range []string{setting, c.fix, "gcloud pubsub", "--project=project"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("checkSettings = %v, want it to mention %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "%!") {
				t.Errorf("checkSettings = %v: its format is broken", err)
			}
		})
	}
}

func TestTransformingTopicIsRefused(t *testing.T) {
	t.Parallel()
	config := realConfig()
	topic := &pubsubpb.Topic{Name: config.topicPath(), MessageTransforms: []*pubsubpb.MessageTransform{{}}}
	err := checkSettings(config, topic, wantedSubscription(config))
	if err == nil || !strings.Contains(err.Error(), "topics update") {
		t.Errorf("checkSettings = %v, want an error with the command for the topic", err)
	}
}

func TestOneErrorListsAllProblems(t *testing.T) {
	t.Parallel()
	server := fakeServer(t)
	config := fakeConfig(server)
	bad := wantedSubscription(config)
	bad.AckDeadlineSeconds = 10
	bad.EnableMessageOrdering = true
	bad.ExpirationPolicy.Ttl = durationpb.New(24 * time.Hour)
	bad.RetryPolicy = &pubsubpb.RetryPolicy{MinimumBackoff: durationpb.New(10 * time.Second)}
	seed(t, server, bad)
	_, err := New(testContext(t), config)
	if err == nil {
		t.Fatal("New = nil error, want one")
	}
	for _, want := range []string{"ack_deadline_seconds is 10", "enable_message_ordering", "expiration_policy.ttl is 24h0m0s", "retry_policy is 10s"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want it to mention %q", err, want)
		}
	}
}
