package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/emit"
)

// ownPool has connections that the queue did not prepare: they have the defaults of others, and soon
// those that were set since.
func (s *stage) ownPool(ctx context.Context, databaseURL string) (*eventqueue.Queue, *pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, nil, fmt.Errorf("the URL of our own Postgres: %w", err)
	}
	config.MaxConns, config.MaxConnLifetime, config.HealthCheckPeriod = emit.Count, 10*time.Second, time.Second
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect with a pool of one's own: %w", err)
	}
	s.OnCleanup(func(context.Context) error { pool.Close(); return nil })
	notifier, err := pubsubnotify.New(ctx, s.PubSub(s.notifierOf[check.SlotEmitter].Address()))
	if err != nil {
		return nil, nil, err
	}
	s.OnCleanup(func(context.Context) error { return notifier.Close() })
	queue, err := eventqueue.New(pgstore.New(pool), notifier, eventqueue.QueueConfig{})
	if err != nil {
		return nil, nil, err
	}
	s.OnCleanup(queue.Close)
	return queue, pool, nil
}
