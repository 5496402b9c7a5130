package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// operator is somebody with all rights at Pub/Sub, past all proxies.
type operator struct {
	topics        *pubsub.TopicAdminClient
	subscriptions *pubsub.SubscriptionAdminClient
}

func (r *rig) operator(ctx context.Context) *operator {
	conn, err := grpc.NewClient(r.stage.emulator.URL, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	r.must(err)
	r.OnCleanup(func(context.Context) error { return conn.Close() })
	topics, err := pubsub.NewTopicAdminClient(ctx, option.WithGRPCConn(conn))
	r.must(err)
	subscriptions, err := pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn))
	r.must(err)
	return &operator{topics, subscriptions}
}

func (r *rig) topicPath() string { return "projects/" + projectID + "/topics/" + r.topic() }
func (r *rig) subscriptionPath() string {
	return "projects/" + projectID + "/subscriptions/" + r.subscription()
}

func deleteTopic(ctx context.Context, r *rig) {
	r.must(r.operator(ctx).topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: r.topicPath()}))
}

func deleteSubscription(ctx context.Context, r *rig) {
	r.must(r.operator(ctx).subscriptions.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: r.subscriptionPath()}))
}

// remake makes the topic and the subscription anew, as the configuration page says.
func remake(ctx context.Context, r *rig) {
	o := r.operator(ctx)
	// Either may be gone or there; what counts is that both are made now.
	_ = o.subscriptions.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: r.subscriptionPath()})
	_ = o.topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: r.topicPath()})
	r.must(r.makeBoth(ctx))
}

// attached reports whether the subscription is there and has its topic.
func (r *rig) attached(ctx context.Context, o *operator) bool {
	s, err := o.subscriptions.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: r.subscriptionPath()})
	return err == nil && s.GetTopic() == r.topicPath()
}

// readiness is what a program says on /readyz.
func (r *rig) readiness(ctx context.Context, p *program) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url(ctx, p)+"/readyz", http.NoBody)
	r.must(err)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }() // it is read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
