package service

import (
	"context"
	"errors"

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

// openNotifier opens the doorbell that the configuration names, and refuses one
// that is unfit.
func openNotifier(ctx context.Context, c Config, pool *pgxpool.Pool, log *zap.Logger) (Notifier, error) {
	if !c.UsesPubSub() {
		return openOnPostgres(ctx, pool, log)
	}
	config := c.PubSub()
	config.Logger = log
	notifier, err := opened(pubsubnotify.New(ctx, config))
	if err == nil {
		warnOfMixedDoorbells(ctx, pool, log)
	}
	return notifier, err
}

func openOnPostgres(ctx context.Context, pool *pgxpool.Pool, log *zap.Logger) (Notifier, error) {
	notifier, err := pgnotify.New(pool, pgnotify.Config{Logger: log})
	if err != nil {
		return nil, err
	}
	if err := notifier.Check(ctx); err != nil {
		return nil, errors.Join(err, notifier.Close())
	}
	return notifier, nil
}

// warnOfMixedDoorbells says that somebody rings in Postgres while this program
// has Pub/Sub. That it could not look is nothing to warn of: with Pub/Sub nobody
// needs that table, and the program's role may not be allowed to read it.
func warnOfMixedDoorbells(ctx context.Context, pool *pgxpool.Pool, log *zap.Logger) {
	waiting, err := pgnotify.Waiting(ctx, pool)
	if err != nil {
		log.Debug("could not look for notifications in Postgres", zap.Error(err))
		return
	}
	if waiting {
		log.Warn("NOTIFIER is pubsub here, but notifications wait in Postgres, which no program with Pub/Sub looks at: " +
			"if a program of this database has NOTIFIER=postgres, its events start late or not at all, so give all programs the same NOTIFIER; " +
			"if they have it and these are left of a change-over, empty the table: DELETE FROM events_v2_notifications")
	}
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
