package programs

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/command"
)

// Emitter emits through the library, and pauses handlers.
type Emitter struct {
	Pool  *pgxpool.Pool
	Queue *eventqueue.Queue
	Rules *operate.Rules
}

// OpenEmitter connects to the database under a name, and to Pub/Sub, until c cleans up.
func OpenEmitter(ctx context.Context, c *command.Cleanups, databaseURL, name string, connections int32, pubsub pubsubnotify.Config) (*Emitter, error) {
	return openEmitter(ctx, c, databaseURL, name, connections, func(*pgxpool.Pool) (closer, error) { return pubsubnotify.New(ctx, pubsub) })
}

// OpenPostgresEmitter is OpenEmitter with Postgres as the notifier.
func OpenPostgresEmitter(ctx context.Context, c *command.Cleanups, databaseURL, name string, connections int32) (*Emitter, error) {
	return openEmitter(ctx, c, databaseURL, name, connections, func(pool *pgxpool.Pool) (closer, error) {
		return pgnotify.New(pool, pgnotify.Config{PublishOnly: true})
	})
}

// closer is a notifier that has connections of its own.
type closer interface {
	eventqueue.Notifier
	io.Closer
}

func openEmitter(ctx context.Context, c *command.Cleanups, databaseURL, name string, connections int32, notify func(*pgxpool.Pool) (closer, error)) (*Emitter, error) {
	pool, err := pgstore.Open(ctx, databaseURL, name, connections)
	if err != nil {
		return nil, err
	}
	c.OnCleanup(func(context.Context) error { pool.Close(); return nil })
	notifier, err := notify(pool)
	if err != nil {
		return nil, err
	}
	c.OnCleanup(func(context.Context) error { return notifier.Close() })
	store := pgstore.New(pool)
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		return nil, err
	}
	c.OnCleanup(queue.Close)
	rules, err := operate.NewRules(store, queue)
	return &Emitter{pool, queue, rules}, err
}

// PubSubEnvironment configures a program to use the topic and the subscription.
func PubSubEnvironment(c pubsubnotify.Config) map[string]string {
	settings := map[string]string{
		"PUBSUB_PROJECT_ID":    c.ProjectID,
		"PUBSUB_TOPIC":         c.Topic,
		"PUBSUB_SUBSCRIPTION":  c.Subscription,
		"PUBSUB_EMULATOR_HOST": c.EmulatorHost,
	}
	if c.Create {
		settings["PUBSUB_CREATE"] = "true"
	}
	return settings
}
