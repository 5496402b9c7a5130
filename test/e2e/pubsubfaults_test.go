package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"

	"eventsv2/eventqueue"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/testenv"
)

// throughProxy makes a deployment whose programs reach the emulator through a proxy
// that can fail single methods.
func throughProxy(t *testing.T) (*rig, *pubsubproxy.Server) {
	t.Helper()
	r := newRig(t, "greet")
	proxy, err := pubsubproxy.Open(testenv.Context(t), testenv.EmulatorHost(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	r.environment["PUBSUB_EMULATOR_HOST"] = proxy.Address()
	return r, proxy
}

// fault is a way in which Pub/Sub fails, and how it is reported.
type fault struct {
	begin, end func(r *rig, proxy *pubsubproxy.Server)
	// publishing means that the program that publishes, here cron, reports it; pulling that
	// the one that pulls does.
	publishing, pulling bool
	// advice is the text in readiness, remedy the one in the log.
	advice, remedy string
}

func refuse(method string, code codes.Code) func(*rig, *pubsubproxy.Server) {
	return func(_ *rig, proxy *pubsubproxy.Server) { proxy.Set(method, pubsubproxy.Refuse(code, "on purpose")) }
}

func hang(method string) func(*rig, *pubsubproxy.Server) {
	return func(_ *rig, proxy *pubsubproxy.Server) { proxy.Set(method, pubsubproxy.Hang) }
}

func heal(_ *rig, proxy *pubsubproxy.Server) { proxy.Heal() }

// make again makes topic and subscription as the log advises.
func makeAgain(r *rig, _ *pubsubproxy.Server) {
	r.subscriptions(func(ctx context.Context, subscriptions *pubsub.SubscriptionAdminClient, topics *pubsub.TopicAdminClient, subscription, topic string) error {
		_, _ = topics.CreateTopic(ctx, &pubsubpb.Topic{Name: topic}) // it may be there
		_ = subscriptions.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription})
		_, err := subscriptions.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 60})
		return err
	})
}

// TestEachPubSubFaultIsNamed: work goes on, log and readiness of the programs that it
// concerns name cause and remedy, and when it is over Pub/Sub is used again (I19).
func TestEachPubSubFaultIsNamed(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	const everything, publish, pull = pubsubproxy.EveryMethod, "Publish", "Pull"
	const (
		silent = "it does not answer: check that it runs and can be reached"
		gone   = "the topic or the subscription is gone: have them made again"
	)
	for name, f := range map[string]fault{
		"it accepts and is quiet": {hang(everything), heal, true, true, silent, "does not answer; check that it runs"},
		"no right to publish":     {refuse(publish, codes.PermissionDenied), heal, true, false, "a right is missing: grant roles/pubsub.publisher", "grant it roles/pubsub.publisher in project e2e"},
		"no right to pull":        {refuse(pull, codes.PermissionDenied), heal, false, true, "a right is missing: grant roles/pubsub.subscriber", "grant it roles/pubsub.subscriber in project e2e"},
		"no quota to publish":     {refuse(publish, codes.ResourceExhausted), heal, true, false, "a quota is exhausted: raise it", "a quota of project e2e is exhausted; raise it"},
		"publishing fails":        {refuse(publish, codes.Unavailable), heal, true, false, silent, "does not answer; check that it runs"},
		"pulling fails":           {refuse(pull, codes.Unavailable), heal, false, true, silent, "does not answer; check that it runs"},
		"no topic": {func(r *rig, _ *pubsubproxy.Server) {
			r.subscriptions(func(ctx context.Context, _ *pubsub.SubscriptionAdminClient, topics *pubsub.TopicAdminClient, _, topic string) error {
				return topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic})
			})
		}, makeAgain, true, true, "have ", "gcloud pubsub topics create"},
		"no subscription": {func(r *rig, _ *pubsubproxy.Server) {
			r.subscriptions(func(ctx context.Context, subscriptions *pubsub.SubscriptionAdminClient, _ *pubsub.TopicAdminClient, subscription, _ string) error {
				return subscriptions.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription})
			})
		}, makeAgain, false, true, gone, "gcloud pubsub subscriptions create"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, proxy := throughProxy(t)
			r.environment["PUBSUB_CREATE"] = "false"
			worker, cron := r.start("worker", nil), r.start("cron", nil)
			worker.await("worker started")
			cron.await("cron started")
			emitter := r.emitter()
			r.emitOn(emitter, 1)
			r.target.await(t, 1)

			f.begin(r, proxy)
			r.emitOn(emitter, 200)
			r.target.await(t, 201)
			for p, concerned := range map[*program]bool{worker: f.pulling, cron: f.publishing} {
				if concerned {
					r.awaitNamed(p, emitter, f)
				}
			}

			f.end(r, proxy)
			published, pulled := proxy.Answered("Publish"), proxy.Answered("Pull")
			testenv.Eventually(t, "Pub/Sub is used again", func() bool {
				r.emitOn(emitter, 1)
				return proxy.Answered("Publish") > published && proxy.Answered("Pull") > pulled
			})
			for p, concerned := range map[*program]bool{worker: f.pulling, cron: f.publishing} {
				if concerned {
					testenv.Eventually(t, "readiness of "+p.Name+" says that all is well", func() bool {
						r.markPending()
						_, text := p.page("/readyz")
						return strings.HasPrefix(text, "ready\n")
					})
				}
			}
		})
	}
}

// awaitNamed waits until a program says what is wrong and what to do.
func (r *rig) awaitNamed(p *program, emitter *eventqueue.Queue, f fault) {
	r.t.Helper()
	testenv.Eventually(r.t, "readiness of "+p.Name+" says "+f.advice, func() bool {
		r.emitOn(emitter, 1) // cron learns of it when it publishes
		r.markPending()
		status, text := p.page("/readyz")
		if status == http.StatusServiceUnavailable {
			return false // one check of the database may take longer than an answer of /readyz waits
		}
		if status != http.StatusOK || strings.Contains(text, "127.0.0.1") || strings.Contains(text, r.environment["PUBSUB_TOPIC"]) {
			r.t.Errorf("/readyz of %s answers %d %s", p.Name, status, text)
		}
		return strings.Contains(text, "but Pub/Sub cannot be used") && strings.Contains(text, f.advice)
	})
	p.await(f.remedy)
}

// markPending inserts an event by SQL, whose notification only cron can publish.
func (r *rig) markPending() {
	r.t.Helper()
	if _, err := r.pool.Exec(testenv.Context(r.t), `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'WORKER', 'greet', '_', '1')`, [16]byte(canvas)); err != nil {
		r.t.Fatal(err)
	}
}

// TestMissingTopicIsNamedAtStart is named by each program, which works without it.
func TestMissingTopicIsNamedAtStart(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newRig(t, "greet")
	r.environment["PUBSUB_CREATE"], r.environment["PUBSUB_TOPIC"], r.environment["PUBSUB_SUBSCRIPTION"] = "false", "no-such-topic", "no-such-subscription"
	const missing, remedy = "topic projects/e2e/topics/no-such-topic", "gcloud pubsub topics create no-such-topic --project=e2e"
	worker, cron := r.start("worker", nil), r.start("cron", nil)
	logs := newLines()
	app := r.embed(logs, nil)
	for _, text := range []string{missing, remedy} {
		worker.await(text)
		cron.await(text)
		logs.await(t, text)
	}
	worker.await("worker started")
	cron.await("cron started")
	if _, err := app.Emit(testenv.Context(t), event("greet", `1`)); err != nil {
		t.Fatal(err)
	}
	r.target.await(t, 1)
}
