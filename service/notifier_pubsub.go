package service

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/setup"
	"eventsv2/pubsubnotify"
)

func init() {
	register(PubSub, kind{
		// A subscription that is unfit is refused.
		open: func(ctx context.Context, c Config, _ *pgxpool.Pool) (notifier, error) {
			return opened[notifier](pubsubnotify.New(ctx, c.PubSub))
		},
		publish: func(ctx context.Context, c Config, _ *pgxpool.Pool) (publisher, error) {
			return opened[publisher](pubsubnotify.NewPublisher(ctx, c.PubSub))
		},
		environment: &setup.NotifierVariables{}, // setup.Config has them
		fill:        fillPubSub,
		configured:  func(c Config) bool { return c.PubSub.Configured() },
		validate:    func(c Config) error { return c.PubSub.Validate() },
		replaced:    &replaced{name: "Pub/Sub", advice: pubsubnotify.Advice},
		logged:      func(c Config) string { return "subscription " + c.PubSub.Subscription },
	})
}

func fillPubSub(c *Config) {
	if c.PubSub.EmulatorHost != "" {
		c.PubSub.ProjectID = cmp.Or(c.PubSub.ProjectID, "local")
	}
	c.PubSub.Topic = cmp.Or(c.PubSub.Topic, "events-v2")
	c.PubSub.Subscription = cmp.Or(c.PubSub.Subscription, "events-v2-workers")
	c.PubSub.Logger = cmp.Or(c.PubSub.Logger, c.Logger)
}
