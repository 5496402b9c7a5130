package check

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/api/option"
	pubsub "google.golang.org/api/pubsub/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"eventsv2/pubsubnotify"
)

// never is the time to live of a subscription that does not expire, in Terraform. The API has a policy without one.
const never = ""

// checkSubscription makes topic and subscription on the client library's fake, and has pubsubnotify look at them as a
// worker does when it starts.
func checkSubscription(r *Report, where string, topic *pubsubpb.Topic, subscription *pubsubpb.Subscription) {
	r.count("subscriptions")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server := pstest.NewServerWithAddress("127.0.0.1:0")
	defer server.Close()
	if _, err := server.GServer.CreateTopic(ctx, topic); err != nil {
		r.problem(where, "Pub/Sub refuses the topic: %v", err)
		return
	}
	if _, err := server.GServer.CreateSubscription(ctx, subscription); err != nil {
		r.problem(where, "Pub/Sub refuses the subscription: %v", err)
		return
	}
	connection, err := grpc.NewClient(server.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.problem(where, "%v", err)
		return
	}
	defer connection.Close()
	// Not as an emulator, whose subscriptions never expire.
	notifier, err := pubsubnotify.New(ctx, pubsubnotify.Config{ProjectID: exampleProject, Topic: last(topic.GetName()), Subscription: last(subscription.GetName()),
		ClientOptions: []option.ClientOption{option.WithGRPCConn(connection)}})
	if err != nil {
		r.problem(where, "workers refuse it: %v", err)
		return
	}
	defer notifier.Close()
	if err := notifier.Check(ctx); err != nil {
		r.problem(where, "workers refuse it: %v", err)
	}
}

// checkSubscriptions checks that of the module.
func (m *module) checkSubscriptions() {
	for _, made := range m.made {
		s, ok := made.object.(*pubsub.Subscription)
		if !ok {
			continue
		}
		where := "deploy/terraform " + made.address
		subscription := &pubsubpb.Subscription{}
		policy := s.ExpirationPolicy
		s.ExpirationPolicy = nil
		body, err := s.MarshalJSON()
		if err == nil {
			err = protojson.Unmarshal(body, subscription)
		}
		if err != nil {
			m.r.problem(where, "%v", err)
			continue
		}
		subscription.Name = "projects/" + exampleProject + "/subscriptions/" + s.Name
		if policy != nil {
			subscription.ExpirationPolicy = &pubsubpb.ExpirationPolicy{}
			if policy.Ttl != never {
				if d, err := time.ParseDuration(policy.Ttl); err == nil {
					subscription.ExpirationPolicy.Ttl = durationpb.New(d)
				}
			}
		}
		checkSubscription(m.r, where, &pubsubpb.Topic{Name: s.Topic}, subscription)
	}
}

// checkScriptSubscriptions checks those that commands of gcloud make.
func checkScriptSubscriptions(r *Report, where string, all []command) {
	found := false
	for _, c := range all {
		if !c.has("gcloud", "pubsub", "subscriptions", "create") || len(c.words) < 5 {
			continue
		}
		found = true
		topic, _ := c.flag("topic")
		if !slices.ContainsFunc(all, func(c command) bool { return c.has("gcloud", "pubsub", "topics", "create", topic) }) {
			r.problem(where, "nothing makes the topic %q", topic)
		}
		s := &pubsubpb.Subscription{Name: "projects/" + exampleProject + "/subscriptions/" + c.words[4], Topic: "projects/" + exampleProject + "/topics/" + topic}
		s.AckDeadlineSeconds = 10 // what gcloud sets
		if text, ok := c.flag("ack-deadline"); ok {
			n, _ := strconv.Atoi(text) // 0 is refused
			s.AckDeadlineSeconds = int32(n)
		}
		if text, ok := c.flag("message-retention-duration"); ok {
			s.MessageRetentionDuration = durationpb.New(days(text))
		}
		if text, ok := c.flag("expiration-period"); ok {
			s.ExpirationPolicy = &pubsubpb.ExpirationPolicy{}
			if text != "never" {
				s.ExpirationPolicy.Ttl = durationpb.New(days(text))
			}
		}
		checkSubscription(r, where, &pubsubpb.Topic{Name: s.Topic}, s)
	}
	if !found {
		r.problem(where, "nothing makes the subscription")
	}
}

// days reads a duration as gcloud does: also one in days.
func days(text string) time.Duration {
	if n, ok := strings.CutSuffix(text, "d"); ok {
		if count, err := strconv.Atoi(n); err == nil {
			return time.Duration(count) * 24 * time.Hour
		}
	}
	d, _ := time.ParseDuration(text) // 0 is refused
	return d
}
