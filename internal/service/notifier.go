package service

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/pubsubnotify"
)

// Notifier is the doorbell of a program.
type Notifier interface {
	eventqueue.Notifier

	// Check reports whether the doorbell can be reached.
	Check(ctx context.Context) error

	// Close ends it; what it has leased goes to others.
	Close() error
}

// openNotifier opens the doorbell that the configuration names.
func openNotifier(ctx context.Context, c Config, pool *pgxpool.Pool, log *zap.Logger) (Notifier, error) {
	if !c.UsesPubSub() {
		return opened(pgnotify.New(pool, pgnotify.Config{Logger: log}))
	}
	config := c.PubSub()
	config.Logger = log
	return opened(pubsubnotify.New(ctx, config))
}

// opened keeps a nil pointer from becoming a Notifier that is not nil.
func opened[N Notifier](notifier N, err error) (Notifier, error) {
	if err != nil {
		return nil, err
	}
	return notifier, nil
}

// Receiver is what a worker pulls from. Behind Pub/Sub there is the database, for
// when Pub/Sub is down; a doorbell on Postgres is down when the queue is.
func (r *Resources) Receiver(c Config, log *zap.Logger) (eventqueue.Receiver, error) {
	if !c.UsesPubSub() {
		return r.Notifier, nil
	}
	return fallback.New(r.Notifier, r.Store, fallback.Config{LockTimeout: c.LockTimeout, Logger: log})
}
