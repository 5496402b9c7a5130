package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/service"
	"eventsv2/pubsubnotify"
)

// applicationName is shown in pg_stat_activity.
const applicationName = "eventsv2-eventctl"

// config reads the configuration; the flag wins over DATABASE_URL.
func (a *app) config() (service.Config, error) {
	environment := a.environment
	if a.databaseURL != "" {
		environment = maps.Clone(environment)
		if environment == nil {
			environment = map[string]string{}
		}
		environment["DATABASE_URL"] = a.databaseURL
	}
	config, err := service.Load(environment)
	if err != nil {
		return config, badInput(err)
	}
	return config, nil
}

// withStore runs f on the database.
func (a *app) withStore(ctx context.Context, f func(store *pgstore.Store, config service.Config) error) error {
	config, err := a.config()
	if err != nil {
		return err
	}
	pool, err := service.OpenDatabase(ctx, config, applicationName)
	if err != nil {
		return failed(err)
	}
	defer pool.Close()
	return f(pgstore.New(pool), config)
}

// doorbell is the queue and how its notifications go out.
type doorbell struct {
	store  *pgstore.Store
	queue  *eventqueue.Queue
	silent bool
	// publisher is never used when silent.
	publisher eventqueue.Publisher
	timeout   time.Duration
}

// errSilent is why nothing is published under --no-notify.
var errSilent = errors.New("the notifications are left to the relay")

// silence is the publisher of --no-notify: what it refuses becomes owed.
type silence struct{}

func (silence) Publish(context.Context, []eventqueue.Notification) error { return errSilent }

// silentRest is longer than any run of the program.
const silentRest = 24 * time.Hour

// checkPublishing finds out before anything is opened whether notifications can
// be published, if they shall be.
func checkPublishing(config service.Config, silent bool) error {
	if silent || !config.UsesPubSub() {
		return nil
	}
	if config.ProjectID == "" {
		return badInput(errors.New("PUBSUB_PROJECT_ID is not set: set it (or PUBSUB_EMULATOR_HOST) as for the workers, " +
			"or set NOTIFIER=postgres as for the workers, or leave the notifications to the relay with --no-notify"))
	}
	if err := config.PubSub().Validate(); err != nil {
		return badInput(err)
	}
	return nil
}

// withQueue runs f on the database and the doorbell, and waits for what is being
// published.
func (a *app) withQueue(ctx context.Context, silent bool, f func(bell *doorbell) error) (err error) {
	config, err := a.config()
	if err != nil {
		return err
	}
	if err := checkPublishing(config, silent); err != nil {
		return err
	}
	if silent {
		return a.withSilentQueue(ctx, f)
	}
	resources, err := service.Open(ctx, config, applicationName, a.logger())
	if pubsubnotify.Unreachable(err) {
		a.complain("warning", fmt.Errorf("Pub/Sub cannot be reached, so the notifications are left to the relay, as with --no-notify: %w", err))
		return a.withSilentQueue(ctx, f)
	}
	if err != nil {
		return failed(err)
	}
	defer func() {
		if closeErr := resources.Close(); err == nil && closeErr != nil {
			err = failed(closeErr)
		}
	}()
	return f(&doorbell{store: resources.Store, queue: resources.Queue, publisher: resources.Notifier, timeout: config.PublishTimeout})
}

// withSilentQueue is withQueue without a doorbell: all notifications are owed, and
// the relay is told.
func (a *app) withSilentQueue(ctx context.Context, f func(bell *doorbell) error) error {
	return a.withStore(ctx, func(store *pgstore.Store, config service.Config) error {
		queue, err := eventqueue.New(store, silence{}, eventqueue.QueueConfig{Limits: config.Limits(), PublishRest: silentRest})
		if err != nil {
			return failed(err)
		}
		err = f(&doorbell{store: store, queue: queue, silent: true})
		// Also what was done before an interrupt is owed.
		if wakeErr := wake(context.WithoutCancel(ctx), store); err == nil {
			err = failed(wakeErr)
		}
		return err
	})
}

// wake has the relay publish what this program left to it.
func wake(ctx context.Context, store *pgstore.Store) error {
	if err := store.WakeRelay(ctx); err != nil {
		return fmt.Errorf("wake the relay, which publishes on its own timer without that: %w", err)
	}
	return nil
}

// publishOwed publishes the owed notifications of events. What cannot be
// published is left to the relay.
func (b *doorbell) publishOwed(ctx context.Context, ids []eventqueue.EventID) error {
	if b.silent || len(ids) == 0 {
		return nil
	}
	notifications, err := b.store.TakeOwed(ctx, ids)
	if err != nil {
		return fmt.Errorf("look up the notifications that are owed: %w", err)
	}
	if len(notifications) == 0 {
		return nil
	}
	publishCtx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if err := b.publisher.Publish(publishCtx, notifications); err != nil {
		return errors.Join(fmt.Errorf("publish %s: %w", plural(len(notifications), "notification"), err), b.store.Owe(ctx, ids))
	}
	return nil
}

// logger shows the warnings of the libraries as this program's own.
func (a *app) logger() *zap.Logger { return zap.New(&warnings{app: a}) }
