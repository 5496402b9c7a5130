package eventctl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/internal/cloudsql"
	"eventsv2/internal/setup"
	"eventsv2/migrations"
	"eventsv2/service"
	"eventsv2/valuecodec"
)

// applicationName is shown in pg_stat_activity.
const applicationName = "eventsv2-eventctl"

// withStore runs f on the database.
func (p *program) withStore(ctx context.Context, f func(store *pgstore.Store, config setup.Config) error) error {
	config, err := p.config()
	if err != nil {
		return err
	}
	pool, err := openDatabase(ctx, config)
	if err != nil {
		return failed(err)
	}
	defer pool.Close()
	return f(pgstore.NewIn(config.Schema, pool), config)
}

// checkTakes bounds the check of the database before a command.
const checkTakes = 10 * time.Second

// openDatabase connects to the database, and checks its settings and the version of its
// schema. If the database cannot be reached it fails at once.
func openDatabase(ctx context.Context, c setup.Config) (*pgxpool.Pool, error) {
	access, err := cloudsql.Access(ctx, c)
	if err != nil {
		return nil, err
	}
	pool, err := pgstore.NewPoolWith(access, c.DatabaseURL, applicationName, c.DatabaseMaxConns)
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithTimeout(ctx, checkTakes)
	defer cancel()
	if err = pgstore.NewIn(c.Schema, pool).Check(looking); err == nil {
		err = migrations.In(c.Schema).Check(looking, pool)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// withReader runs f with a reader of the queue.
func (p *program) withReader(ctx context.Context, f func(reader *inspect.Reader) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, _ setup.Config) error {
		return f(inspect.NewIn(store.Schema(), store.Pool()))
	})
}

// connection is the queue on its database.
type connection struct {
	store *pgstore.Store // its changes are audited
	queue *eventqueue.Queue
	// silent means that publishing notifications is left to the relay.
	silent bool
}

// errSilent is why nothing is published under --no-notify.
var errSilent = errors.New("the notifications are left to the relay")

// silence is the publisher for --no-notify. It refuses every notification, which then
// becomes pending.
type silence struct{}

func (silence) Publish(context.Context, []eventqueue.Notification) error { return errSilent }

// silentRest is the wait after a failed publish. It is longer than any run of the program.
const silentRest = 24 * time.Hour

// silentQueue is a queue that publishes nothing.
func silentQueue(store *pgstore.Store, limits eventqueue.Limits, around ...eventqueue.EmitMiddleware) (*eventqueue.Queue, error) {
	return eventqueue.New(store, silence{}, eventqueue.QueueConfig{Limits: limits, PublishRest: silentRest, EmitMiddleware: around})
}

// checkPublishing checks before anything is opened that notifications can be published,
// unless silent is set.
func checkPublishing(config setup.Config, silent bool) error {
	if silent {
		return nil
	}
	if !config.NotifierNamed && !config.UsesPubSub() || config.UsesPubSub() && config.ProjectID == "" {
		return badInput(errors.New("it is not known how the workers are notified: set, as for them, NOTIFIER=postgres, or PUBSUB_PROJECT_ID " +
			"(or PUBSUB_EMULATOR_HOST), or leave the notifications to the relay with --no-notify"))
	}
	if !config.UsesPubSub() {
		return nil
	}
	if err := config.PubSub().Validate(); err != nil {
		return badInput(err)
	}
	return nil
}

// withQueue runs f on the database and the notifier, and waits for running publishes.
func (p *program) withQueue(ctx context.Context, silent bool, f func(c *connection) error) (err error) {
	config, err := p.config()
	if err != nil {
		return err
	}
	if err := checkPublishing(config, silent); err != nil {
		return err
	}
	if silent {
		return p.withSilentQueue(ctx, f)
	}
	variables := maps.Clone(p.variables())
	delete(variables, "VALUE_KEYSET_FILE") // see encrypting
	emitter, err := p.openEmitter(ctx, variables, encrypting(config)...)
	if err != nil {
		return failed(err)
	}
	defer func() {
		if closeErr := emitter.Close(); err == nil && closeErr != nil {
			err = failed(closeErr)
		}
	}()
	err = f(&connection{store: emitter.Store().As(actor(emitter.Store())), queue: emitter.Queue})
	_ = minutes.Of(emitter.Queue).HandIn(context.WithoutCancel(ctx)) // Close would wait for it for a quarter of a second only
	return err
}

// openEmitter opens a service that only emits. If the database cannot be reached it fails at
// once.
func (p *program) openEmitter(ctx context.Context, variables map[string]string, around ...eventqueue.EmitMiddleware) (*service.Service, error) {
	config, err := service.FromEnvironment(variables)
	if err != nil {
		return nil, err
	}
	config.Queue.EmitMiddleware = around
	if config.Access, err = cloudsql.FromEnvironment(ctx, p.variables()); err != nil {
		return nil, err
	}
	config.Name, config.Logger = applicationName, p.Logger()
	config.MultiTenant, config.HandlersFile, config.NoWait = true, "", true
	config.NoWorker, config.NoRelay, config.NoCron, config.NoPruner = true, true, true, true
	return service.Open(ctx, config)
}

// encrypting is what encrypts values that are emitted, if there is a file with a key set. It is read at the first emit: other
// commands have to work where it is not mounted.
func encrypting(config setup.Config) []eventqueue.EmitMiddleware {
	if config.ValueKeyset == "" || !config.EncryptValues {
		return nil
	}
	load := sync.OnceValues(func() (*valuecodec.Codec, error) { return valuecodec.Load(config.ValueKeyset) })
	return []eventqueue.EmitMiddleware{func(ctx context.Context, events []eventqueue.NewEvent, next eventqueue.EmitFunc) ([]eventqueue.Emitted, error) {
		codec, err := load()
		if err != nil {
			return nil, fmt.Errorf("configuration: VALUE_KEYSET_FILE: %w", err)
		}
		return codec.Emit(ctx, events, next)
	}}
}

// withSilentQueue is withQueue without a notifier: all notifications are pending, and
// the relay is woken.
func (p *program) withSilentQueue(ctx context.Context, f func(c *connection) error) error {
	return p.withStore(ctx, func(store *pgstore.Store, config setup.Config) error {
		queue, err := silentQueue(store, config.Limits(), encrypting(config)...)
		if err != nil {
			return failed(err)
		}
		err = f(&connection{store: store.As(actor(store)), queue: queue, silent: true})
		_ = minutes.Of(queue).HandIn(context.WithoutCancel(ctx)) // what was changed is changed, even if it is not counted
		// Even after an interrupt: notifications of the steps before it are pending.
		if wakeErr := store.WakeRelay(context.WithoutCancel(ctx)); err == nil && wakeErr != nil {
			err = failed(fmt.Errorf("wake the relay, which publishes on its own timer without that: %w", wakeErr))
		}
		return err
	})
}

// migrator returns what migrates the schema of the configuration, and the URL of its database.
func (p *program) migrator(ctx context.Context) (m migrations.Migrator, databaseURL string, err error) {
	config, err := p.config()
	if err != nil {
		return m, "", err
	}
	m = migrations.In(config.Schema)
	if m.Access, err = cloudsql.Access(ctx, config); err != nil {
		return m, "", failed(err)
	}
	return m, config.DatabaseURL, nil
}
