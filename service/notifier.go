package service

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/pubsubnotify"
)

// NotifierKind is what wakes workers.
type NotifierKind string

// The kinds of notifiers.
const (
	// PubSub is Google Cloud Pub/Sub.
	PubSub NotifierKind = "pubsub"
	// Postgres is the queue's own database, with LISTEN and NOTIFY.
	Postgres NotifierKind = "postgres"
	// Memory stays within a Service. What other programs emit, its relay finds when it has
	// been due for [maintenance.RelayConfig.Quiet]: it is for tests, and for programs that
	// are alone with their database.
	Memory NotifierKind = "memory"
)

// notifiers are the ways to open each kind: for a program that runs events, which is
// refused a subscription that is unfit, and for one that only publishes.
var notifiers = map[NotifierKind]struct {
	open    func(ctx context.Context, c Config, pool *pgxpool.Pool) (notifier, error)
	publish func(ctx context.Context, c Config, pool *pgxpool.Pool) (publisher, error)
}{
	PubSub: {
		open: func(ctx context.Context, c Config, _ *pgxpool.Pool) (notifier, error) {
			return opened[notifier](pubsubnotify.New(ctx, c.PubSub))
		},
		publish: func(ctx context.Context, c Config, _ *pgxpool.Pool) (publisher, error) {
			return opened[publisher](pubsubnotify.NewPublisher(ctx, c.PubSub))
		},
	},
	Postgres: {
		open: func(_ context.Context, c Config, pool *pgxpool.Pool) (notifier, error) {
			return opened[notifier](pgnotify.New(pool, pgnotify.Config{Logger: c.Logger}))
		},
		publish: func(_ context.Context, c Config, pool *pgxpool.Pool) (publisher, error) {
			return opened[publisher](pgnotify.New(pool, pgnotify.Config{Logger: c.Logger, PublishOnly: true}))
		},
	},
	Memory: {
		open: func(context.Context, Config, *pgxpool.Pool) (notifier, error) {
			return memory{memnotify.New(memnotify.Config{})}, nil
		},
		publish: func(context.Context, Config, *pgxpool.Pool) (publisher, error) {
			return memory{memnotify.New(memnotify.Config{})}, nil
		},
	},
}

// notifier is the notifier of a program that runs events.
type notifier interface {
	publisher
	eventqueue.Receiver
}

// publisher is the notifier of a program that runs none.
type publisher interface {
	eventqueue.Publisher

	// Check reports whether the notifier can be reached.
	Check(ctx context.Context) error

	// Close ends it; what it has leased goes to others.
	Close() error
}

// memory is always there.
type memory struct{ *memnotify.Notifier }

func (memory) Check(context.Context) error { return nil }
func (memory) Close() error                { return nil }

// warnOfMixedNotifiers warns when another program notifies through Postgres while this one
// does not. A failed query is no reason to warn: without that notifier its table is not
// needed, and the program's role may not be allowed to read it.
func warnOfMixedNotifiers(ctx context.Context, pool *pgxpool.Pool, kind NotifierKind, log *zap.Logger) {
	waiting, err := pgnotify.Waiting(ctx, pool)
	if err != nil {
		log.Debug("could not check for notifications in Postgres", zap.Error(err))
		return
	}
	if waiting {
		log.Warn("NOTIFIER is " + string(kind) + " here, but notifications wait in Postgres, where no such program reads them: " +
			"if a program of this database has NOTIFIER=postgres, its events start late or not at all, so give all programs the same NOTIFIER; " +
			"if they have it and these are left of a change-over, empty the table: DELETE FROM events_v2_notifications")
	}
}

// opened keeps a nil pointer from becoming an interface that is not nil.
func opened[I, N any](notifier N, err error) (i I, _ error) {
	if err != nil {
		return i, err
	}
	return any(notifier).(I), nil
}
