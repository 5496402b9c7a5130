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

	"eventsv2/test/attack/harness"
	"eventsv2/test/pubsubproxy"
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

// silence has Pub/Sub accept connections and never answer.
func silence(_ context.Context, r *rig) {
	for _, stream := range []string{harness.Requests, harness.Answers} {
		cure, err := r.wire.Infect(harness.MuteNamed(stream, stream))
		r.must(err)
		r.cures = append(r.cures, cure)
	}
}

func sound(ctx context.Context, r *rig) {
	for _, cure := range r.cures {
		r.must(cure(ctx))
	}
	r.cures = nil
}

func refused(method string, b pubsubproxy.Behaviour) func(context.Context, *rig) {
	return func(_ context.Context, r *rig) { r.pubsubServer.Set(method, b) }
}

func heal(_ context.Context, r *rig) { r.pubsubServer.Heal() }

// awaitAttached waits until the programs have repaired topic and subscription.
func awaitAttached(ctx context.Context, r *rig) {
	o := r.operator(ctx)
	if !r.eventually(ctx, time.Minute, func() bool { return r.attached(ctx, o) }) {
		r.failf("after a minute the subscription has still no topic")
	}
}

// outageStart is how long an event may wait that was emitted when Pub/Sub began to fail: 10 s are
// promised to notice it, and then noticedStart.
const (
	outageStart  = 10*time.Second + noticedStart
	noticedStart = 5 * time.Second
)

// vanishedStart is outageStart for what was pulled and lost: a lease of 10 s more for each
// pull that was under way when the fault began.
const vanishedStart = 35 * time.Second

// swift fails the scenario when fewer than so many events of a label began per second,
// from when they were emitted. That is a small part of what a machine can do.
func (r *rig) swift(label string, perSecond float64) {
	runs, entries := r.runs(label), r.of(label)
	if len(runs) == 0 {
		return // which awaitDone has said
	}
	rate := float64(len(runs)) / runs[len(runs)-1].began.Sub(entries[0].due).Seconds()
	r.figure("per_s=%.0f", rate)
	if rate < perSecond {
		r.latef("%.0f events %s began per second, at least %.0f are promised", rate, label, perSecond)
	}
}

// usedAgain is a multiple of the 10 s within which Pub/Sub is promised to be used again.
const usedAgain = 20 * time.Second

// awaitPubSub waits until notifications go through Pub/Sub again: what a scenario
// emits is published, and pulled.
func (r *rig) awaitPubSub(ctx context.Context) {
	published, pulled := r.pubsubServer.Answered("Publish"), r.pubsubServer.Answered("Pull")
	began := time.Now()
	again := r.eventually(ctx, time.Minute, func() bool {
		r.emit(ctx, batch{label: "after", n: 1, every: 200 * time.Millisecond})
		return r.pubsubServer.Answered("Publish") > published && r.pubsubServer.Answered("Pull") > pulled
	})
	took := time.Since(began)
	switch {
	case !again:
		r.failf("a minute after Pub/Sub is well again it is not used: %d answers to publishing and %d with messages since",
			r.pubsubServer.Answered("Publish")-published, r.pubsubServer.Answered("Pull")-pulled)
	case took > usedAgain:
		r.latef("Pub/Sub is used again %s after it is well, at most %s are allowed here", took.Round(time.Millisecond), usedAgain)
	}
	r.figure("used_again=%.1fs", took.Seconds())
	r.awaitDone(ctx, "after", startLimit)
}
