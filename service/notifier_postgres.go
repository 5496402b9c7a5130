package service

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue/pgnotify"
	"eventsv2/internal/setup"
)

func init() {
	register(Postgres, kind{
		open: func(_ context.Context, c Config, pool *pgxpool.Pool) (notifier, error) {
			return opened[notifier](pgnotify.New(pool, pgnotify.Config{Schema: c.Schema, Logger: c.Logger}))
		},
		publish: func(_ context.Context, c Config, pool *pgxpool.Pool) (publisher, error) {
			return opened[publisher](pgnotify.New(pool, pgnotify.Config{Schema: c.Schema, Logger: c.Logger, PublishOnly: true}))
		},
		environment: &setup.NotifierVariables{},
		inDatabase:  true,
	})
}
