package service

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
)

// Resources are the connections of a program.
type Resources struct {
	Pool     *pgxpool.Pool
	Store    *pgstore.Store
	Notifier Notifier
	Queue    *eventqueue.Queue
}

// Open connects to the database and to the doorbell and checks that both are fit
// for work: the schema is there, and a subscription loses nothing, or the
// notifications in Postgres may be used. name is shown in pg_stat_activity.
func Open(ctx context.Context, c Config, name string, log *zap.Logger) (*Resources, error) {
	pool, err := OpenDatabase(ctx, c, name)
	if err != nil {
		return nil, err
	}
	r := &Resources{Pool: pool, Store: pgstore.New(pool)}
	if r.Notifier, err = openNotifier(ctx, c, pool, log); err != nil {
		pool.Close()
		return nil, err
	}
	r.Queue, err = eventqueue.New(r.Store, r.Notifier, eventqueue.QueueConfig{
		Limits: c.Limits(), PublishTimeout: c.PublishTimeout, Logger: log,
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// OpenDatabase connects to the database and checks the version of its schema.
func OpenDatabase(ctx context.Context, c Config, name string) (*pgxpool.Pool, error) {
	pool, err := pgstore.Open(ctx, c.DatabaseURL, name, c.DatabaseMaxConns)
	if err != nil {
		return nil, err
	}
	if err := migrations.Check(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// How long the last publishes may take at the end of a program.
const closeTimeout = 2 * time.Second

// Close waits for what is being published and closes the connections.
func (r *Resources) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var err error
	if r.Queue != nil {
		err = r.Queue.Close(ctx)
	}
	err = errors.Join(err, r.Notifier.Close())
	r.Pool.Close()
	return err
}

// Ready tells whether the program can reach what it needs, for /readyz.
func (r *Resources) Ready(ctx context.Context) error {
	return errors.Join(r.Pool.Ping(ctx), r.Notifier.Check(ctx))
}
