package e2e_test

import (
	"context"
	"strings"
	"testing"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/testenv"
)

// behindProxy makes a deployment whose programs reach the emulator through a proxy.
func behindProxy(t *testing.T) (*rig, *testenv.TCPProxy) {
	t.Helper()
	r := newRig(t, "greet")
	proxy := testenv.Proxy(t, testenv.EmulatorHost(t))
	r.environment["PUBSUB_EMULATOR_HOST"] = proxy.Address
	return r, proxy
}

// emitter is a queue that publishes where the programs do.
func (r *rig) emitter() *eventqueue.Queue {
	r.t.Helper()
	publisher, err := pubsubnotify.NewPublisher(testenv.Context(r.t), pubsubnotify.Config{ProjectID: r.environment["PUBSUB_PROJECT_ID"],
		Topic: r.environment["PUBSUB_TOPIC"], Subscription: r.environment["PUBSUB_SUBSCRIPTION"], EmulatorHost: r.environment["PUBSUB_EMULATOR_HOST"]})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = publisher.Close() })
	queue, err := eventqueue.New(pgstore.New(r.pool), publisher, eventqueue.QueueConfig{Logger: testenv.Logger(r.t)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = queue.Close(context.Background()) })
	return queue
}

// emitOn emits n events, in as many calls.
func (r *rig) emitOn(queue *eventqueue.Queue, n int) {
	r.t.Helper()
	for range n {
		if _, err := queue.Emit(testenv.Context(r.t), event("greet", `1`)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// TestProgramsStartWithoutPubSub, work, and use it when it comes.
func TestProgramsStartWithoutPubSub(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	for name, silent := range map[string]bool{"nobody listens": false, "somebody accepts and says nothing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, proxy := behindProxy(t)
			proxy.Refuse.Store(!silent)
			proxy.Swallow.Store(silent)
			worker, cron := r.start("worker", nil), r.start("cron", nil)
			worker.await("worker started")
			cron.await("cron started")
			r.emitOn(r.emitter(), 20)
			r.target.await(t, 20)
			worker.await("the notifier is down")

			proxy.Refuse.Store(false)
			proxy.Swallow.Store(false)
			worker.await("the notifier answers again")
			worker.await("topic and subscription are fit")
			r.emit(event("greet", `1`))
			r.target.await(t, 21)
			if status := worker.terminate(); status != 0 {
				t.Errorf("the worker ended with %d", status)
			}
			if status := cron.terminate(); status != 0 {
				t.Errorf("cron ended with %d", status)
			}
		})
	}
}

// TestAWorkerEndsWhenItSeesWrongSettings, with the error that it would have started
// with.
func TestAWorkerEndsWhenItSeesWrongSettings(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r, proxy := behindProxy(t)
	r.subscriptions(func(ctx context.Context, client *pubsub.SubscriptionAdminClient, _ *pubsub.TopicAdminClient, subscription, topic string) error {
		if err := client.DeleteSubscription(ctx, &pubsubpb.DeleteSubscriptionRequest{Subscription: subscription}); err != nil {
			return err
		}
		_, err := client.CreateSubscription(ctx, &pubsubpb.Subscription{Name: subscription, Topic: topic, AckDeadlineSeconds: 60, RetryPolicy: &pubsubpb.RetryPolicy{}})
		return err
	})
	proxy.Refuse.Store(true)
	worker := r.start("worker", nil)
	worker.await("worker started")
	proxy.Refuse.Store(false)
	worker.await("gcloud pubsub subscriptions update")
	if status := worker.wait(); status != 1 {
		t.Errorf("the worker ended with %d", status)
	}
}

// subscriptions runs f on the emulator.
func (r *rig) subscriptions(f func(ctx context.Context, client *pubsub.SubscriptionAdminClient, topics *pubsub.TopicAdminClient, subscription, topic string) error) {
	r.t.Helper()
	ctx := testenv.Context(r.t)
	conn, err := grpc.NewClient(testenv.EmulatorHost(r.t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client, err := pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		r.t.Fatal(err)
	}
	topics, err := pubsub.NewTopicAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		r.t.Fatal(err)
	}
	project := "projects/" + r.environment["PUBSUB_PROJECT_ID"]
	if err := f(ctx, client, topics, project+"/subscriptions/"+r.environment["PUBSUB_SUBSCRIPTION"], project+"/topics/"+r.environment["PUBSUB_TOPIC"]); err != nil {
		r.t.Fatal(err)
	}
}

// TestWorkGoesOnWithAPubSubThatHangs: it accepts and never answers, while the
// programs run. What had been published before is run as well. The logs say once what is wrong, and
// what to do.
func TestWorkGoesOnWithAPubSubThatHangs(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r, proxy := behindProxy(t)
	r.environment["LOG_LEVEL"] = "info"
	worker, cron := r.start("worker", nil), r.start("cron", map[string]string{"RELAY_INTERVAL": "1s"})
	worker.await("worker started")
	cron.await("pruner started")
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	n := newNight(t)
	n.phase("The programs start", worker, cron)

	proxy.Swallow.Store(true)
	r.emit(event("greet", `1`), event("greet", `1`)) // published past the proxy: nobody can pull them
	r.emitOn(r.emitter(), 50)
	r.target.await(t, 53)
	worker.await("the notifier is down")
	cron.await("could not publish notifications")
	n.phase("Pub/Sub hangs", worker, cron)

	proxy.Swallow.Store(false)
	worker.await("the notifier answers again")
	// A worker may find such an event before the relay does.
	for n := 54; n < 154 && !strings.Contains(cron.text(), `"message":"published notifications"`); n++ {
		if _, err := r.pool.Exec(testenv.Context(t), `INSERT INTO events_v2 (canvas_id, module, name, modifier, value) VALUES ($1, 'WORKER', 'greet', '_', '1')`, [16]byte(canvas)); err != nil {
			t.Fatal(err)
		}
		r.target.await(t, n)
	}
	cron.await("notifications are published again")
	cron.await(`"message":"published notifications"`)
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
	n.phase("Pub/Sub is back", worker, cron)
	n.compare("testdata/outage.golden")
}

// TestWorkGoesOnWithoutATopic: it is deleted while the programs run, with and without
// PUBSUB_CREATE. The subscription answers, that it is empty.
func TestWorkGoesOnWithoutATopic(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	for name, create := range map[string]string{"made again": "true", "left": "false"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, "greet")
			r.environment["PUBSUB_CREATE"] = create
			worker := r.start("worker", nil)
			worker.await("worker started")
			r.emit(event("greet", `1`))
			r.target.await(t, 1)
			r.subscriptions(func(ctx context.Context, _ *pubsub.SubscriptionAdminClient, topics *pubsub.TopicAdminClient, _, topic string) error {
				return topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic})
			})
			// Without a relay: programs that cannot publish wake the worker themselves.
			r.emitOn(r.emitter(), 20)
			r.target.await(t, 21)
			if create == "true" {
				worker.await("has been made again")
				r.emit(event("greet", `1`))
				r.target.await(t, 22)
				return
			}
			worker.await("its topic is _deleted-topic_ instead of")
		})
	}
}
