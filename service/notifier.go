package service

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgnotify"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/setup"
)

// NotifierKind is a kind of notifier.
type NotifierKind string

// The kinds of notifiers.
const (
	// PubSub is Google Cloud Pub/Sub.
	PubSub NotifierKind = "pubsub"
	// Postgres is the queue's own database, with LISTEN and NOTIFY.
	Postgres NotifierKind = "postgres"
	// Memory stays within a Service. What other programs emit, its relay finds when it has
	// been due for [maintenance.RelayConfig.LostAfter]: it is for tests, and for programs that
	// are alone with their database.
	Memory NotifierKind = "memory"
)

// kind describes a kind of notifier. Each is registered by a file of its own,
// notifier_<kind>.go.
type kind struct {
	// open makes it for a program that runs events, publish for one that only publishes.
	open    func(ctx context.Context, c Config, pool *pgxpool.Pool) (notifier, error)
	publish func(ctx context.Context, c Config, pool *pgxpool.Pool) (publisher, error)

	// environment has the programs offer it, as a value of NOTIFIER. nil: it is for
	// programs that are written with this package.
	environment *setup.NotifierVariables

	// fill sets defaults in a Config, whatever its notifier is; configured reports whether
	// a Config that names no notifier is for this one; validate returns what makes no
	// sense. nil: there is nothing to configure.
	fill       func(c *Config)
	configured func(c Config) bool
	validate   func(c Config) error

	// inDatabase means that it is part of the database: a program does not begin without it.
	inDatabase bool
	// replaced is set where workers find events without it: a program is ready then.
	replaced *replaced
	// logged is how the log names it. nil: by its kind.
	logged func(c Config) string
}

// replaced is a notifier without which a program works.
type replaced struct {
	name   string                 // in messages
	advice func(err error) string // what is wrong with it, without the names of resources
}

// kinds are all notifiers.
var kinds = map[NotifierKind]kind{}

func register(name NotifierKind, k kind) {
	kinds[name] = k
	if k.environment != nil {
		setup.RegisterNotifier(string(name), *k.environment)
	}
}

// notifierName is how the log names the notifier.
func (c Config) notifierName() string {
	if logged := kinds[c.Notifier].logged; logged != nil {
		return logged(c)
	}
	return string(c.Notifier)
}

// withNotifier fills in what wakes workers.
func (c *Config) withNotifier() {
	if c.Notifier == "" {
		c.Notifier = Postgres
		for name, k := range kinds {
			if k.configured != nil && k.configured(*c) {
				c.Notifier = name
			}
		}
	}
	for _, k := range kinds {
		if k.fill != nil {
			k.fill(c)
		}
	}
}

// validateNotifier asks the notifier of a Config that has its defaults.
func (c Config) validateNotifier() error {
	if validate := kinds[c.Notifier].validate; validate != nil {
		return validate(c)
	}
	return nil
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

// warnOfMixedNotifiers warns when another program notifies through Postgres while this one
// does not. A failed query is no reason to warn: without that notifier its table is not
// needed, and the program's role may not be allowed to read it.
func warnOfMixedNotifiers(ctx context.Context, pool *pgxpool.Pool, schema pgsession.Schema, kind NotifierKind, log *zap.Logger) {
	waiting, err := pgnotify.Waiting(ctx, pool, schema)
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
