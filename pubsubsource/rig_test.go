package pubsubsource_test

import (
	"context"
	"testing"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/api/option"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/pubsubdial"
	"eventsv2/pubsubsource"
	"eventsv2/test/testenv"
)

var (
	canvas  = eventqueue.CanvasID{0x50, 15: 1}
	handler = eventqueue.HandlerKey{Module: "WORKER", Name: "order_placed", Modifier: "_"}
)

// rig is a topic and a subscription on a Pub/Sub server, and a queue on Postgres.
type rig struct {
	t             *testing.T
	server        string
	project       string
	pool          *pgxpool.Pool
	queue         *eventqueue.Queue
	topics        *pubsub.TopicAdminClient
	subscriptions *pubsub.SubscriptionAdminClient
	logs          *observer.ObservedLogs
	log           *zap.Logger
}

func newRig(t *testing.T, server string) *rig {
	t.Helper()
	ctx := testenv.Context(t)
	r := &rig{t: t, server: server, project: "source-" + uuid.NewString(), pool: testenv.Pool(t)}
	core, logs := observer.New(zap.DebugLevel)
	r.log, r.logs = zap.New(core), logs
	r.queue = newQueue(t, r.pool)
	conn, err := pubsubdial.Dial(ctx, server, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if r.topics, err = pubsub.NewTopicAdminClient(ctx, option.WithGRPCConn(conn)); err != nil {
		t.Fatal(err)
	}
	if r.subscriptions, err = pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn)); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"orders", "refused"} {
		if _, err := r.topics.CreateTopic(ctx, &pubsubpb.Topic{Name: r.topic(id)}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func newQueue(t *testing.T, pool *pgxpool.Pool, middleware ...eventqueue.EmitMiddleware) *eventqueue.Queue {
	t.Helper()
	queue, err := eventqueue.New(pgstore.New(pool), memnotify.New(memnotify.Config{}), eventqueue.QueueConfig{Logger: testenv.Logger(t), EmitMiddleware: middleware})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return queue
}

func (r *rig) topic(id string) string { return "projects/" + r.project + "/topics/" + id }

// subscribe makes a subscription that is fit to be a source, but for change.
func (r *rig) subscribe(id string, change func(s *pubsubpb.Subscription)) (name string) {
	r.t.Helper()
	s := &pubsubpb.Subscription{Name: "projects/" + r.project + "/subscriptions/" + id, Topic: r.topic("orders"), AckDeadlineSeconds: 10,
		DeadLetterPolicy: &pubsubpb.DeadLetterPolicy{DeadLetterTopic: r.topic("refused"), MaxDeliveryAttempts: 5}}
	if change != nil {
		change(s)
	}
	if _, err := r.subscriptions.CreateSubscription(testenv.Context(r.t), s); err != nil {
		r.t.Fatal(err)
	}
	return s.Name
}

func (r *rig) publish(messages ...*pubsubpb.PubsubMessage) {
	r.t.Helper()
	if _, err := r.topics.Publish(testenv.Context(r.t), &pubsubpb.PublishRequest{Topic: r.topic("orders"), Messages: messages}); err != nil {
		r.t.Fatal(err)
	}
}

// config is that of a source on this rig.
func (r *rig) config(subscription string) pubsubsource.Config {
	return pubsubsource.Config{Subscription: subscription, Canvas: canvas, Handler: handler, EmulatorHost: r.server, Logger: r.log}
}

// run runs a source until stop is called, or the test ends.
func (r *rig) run(source *pubsubsource.Source) (stop func()) {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	var stopped bool
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-done; err != nil {
			r.t.Errorf("Run = %v", err)
		}
	}
	r.t.Cleanup(stop)
	return stop
}

func (r *rig) source(queue *eventqueue.Queue, config pubsubsource.Config) *pubsubsource.Source {
	r.t.Helper()
	source, err := pubsubsource.New(queue, config)
	if err != nil {
		r.t.Fatal(err)
	}
	return source
}

// count is the first column of the row of a statement.
func (r *rig) count(sql string, args ...any) (n int) {
	r.t.Helper()
	if err := r.pool.QueryRow(testenv.Context(r.t), sql, args...).Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// awaitCount waits until a statement returns a number.
func (r *rig) awaitCount(want int, sql string, args ...any) {
	r.t.Helper()
	testenv.Eventually(r.t, sql, func() bool { return r.count(sql, args...) == want })
}

// awaitLogs waits until there are so many lines of a message.
func (r *rig) awaitLogs(want int, message string) {
	r.t.Helper()
	testenv.Eventually(r.t, message, func() bool { return r.logs.FilterMessage(message).Len() >= want })
}
