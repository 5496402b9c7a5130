package e2e_test

import (
	"context"
	"net/http"
	"strings"
	"syscall"
	"testing"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/pubsubproxy"
	"eventsv2/test/services"
	"eventsv2/test/testenv"
)

// TestWorkGoesOnWithoutPubSub kills the emulator under a running worker. What is
// emitted then runs all the same; and after the emulator has returned, having
// forgotten everything, the notifier rings again.
func TestWorkGoesOnWithoutPubSub(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	emulator, err := services.Emulator(testenv.Context(t), services.Private())
	if err != nil || emulator.PID == 0 {
		testenv.Missing(t, "an outage of Pub/Sub: %v", err)
	}
	t.Cleanup(func() { _ = emulator.Stop(context.Background()) })
	r := newRigOn(t, emulator.URL, "greet")
	r.start("worker", nil).await("worker started")
	r.start("cron", map[string]string{"RELAY_INTERVAL": "2s"})
	emit := func(n int) {
		events := make([]eventqueue.NewEvent, n)
		for i := range events {
			events[i] = event("greet", `1`)
		}
		r.emit(events...)
	}
	emit(10)
	r.target.await(t, 10)

	if err := syscall.Kill(emulator.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	emit(20)
	r.target.await(t, 30)

	if err := emulator.Restart(testenv.Context(t)); err != nil {
		t.Fatal(err)
	}
	emit(20)
	r.target.await(t, 50)
	r.awaitSQL("everything has ended", `SELECT count(*) = 0 FROM events_v2`)
}

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

// TestProgramsStartWithoutPubSub, which accepts and says nothing. They work, and use it when it comes.
func TestProgramsStartWithoutPubSub(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r, proxy := behindProxy(t)
	proxy.Swallow.Store(true)
	worker, cron := r.start("worker", nil), r.start("cron", nil)
	worker.await("worker started")
	cron.await("cron started")
	r.emitOn(r.emitter(), 20)
	r.target.await(t, 20)
	worker.await("the notifier is down")
	testenv.Eventually(t, "readiness names Pub/Sub", func() bool {
		status, text := worker.page("/readyz")
		return status == http.StatusOK && strings.Contains(text, "but Pub/Sub cannot be used") && strings.Contains(text, "it does not answer")
	})

	proxy.Swallow.Store(false)
	worker.await("the notifier answers again")
	worker.await("topic and subscription are fit")
	r.emit(event("greet", `1`))
	r.target.await(t, 21)
	for _, p := range []*program{worker, cron} {
		if status := p.terminate(); status != 0 {
			t.Errorf("%s ended with %d", p.Name, status)
		}
	}
}

// TestWorkerEndsOnWrongSettings, with the error that it would have started
// with.
func TestWorkerEndsOnWrongSettings(t *testing.T) {
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

// TestWorkGoesOnWithoutATopic, which is deleted while the programs run, and without a relay: programs that cannot
// publish wake the worker themselves. The subscription answers, that it is empty.
func TestWorkGoesOnWithoutATopic(t *testing.T) {
	t.Parallel()
	testenv.Promised(t, promisedStart)
	r := newRig(t, "greet")
	r.environment["PUBSUB_CREATE"] = "false"
	worker := r.start("worker", nil)
	worker.await("worker started")
	r.emit(event("greet", `1`))
	r.target.await(t, 1)
	r.subscriptions(func(ctx context.Context, _ *pubsub.SubscriptionAdminClient, topics *pubsub.TopicAdminClient, _, topic string) error {
		return topics.DeleteTopic(ctx, &pubsubpb.DeleteTopicRequest{Topic: topic})
	})
	r.emitOn(r.emitter(), 20)
	r.target.await(t, 21)
	worker.await("its topic is _deleted-topic_ instead of")
}
