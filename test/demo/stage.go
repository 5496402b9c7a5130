package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue/operate"
	"eventsv2/pubsubnotify"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/services"
)

// workers is how many are started, and as many run again after the crash.
const workers = 3

// stopLimit is how long a child may take to stop, its grace period included.
const stopLimit = 20 * time.Second

// stage is everything that runs, and what is known about it.
type stage struct {
	in      *input
	printer *printer
	pool    *pgxpool.Pool
	emitter *emitter
	rules   *operate.Rules
	target  *target
	fleet   *fleet
	address string // of the dashboard, if there is one
}

// setting has the services and programs that the stage needs.
type setting struct {
	databaseURL string
	notifier    *notifier
}

// setUp starts everything; stop stops it.
func setUp(ctx context.Context, opts options, in *input, dir string, printer *printer,
	stop *command.Cleanups, broken context.CancelCauseFunc) (*stage, error) {
	at, err := openServices(ctx, opts, dir, printer, stop)
	if err != nil {
		return nil, err
	}
	topic := "events-v2-demo-" + strings.ToLower(rand.Text()[:10])
	config := pubsubnotify.Config{ProjectID: "eventsv2-demo", Topic: topic, Subscription: topic,
		Create: true, EmulatorHost: at.notifier.host}
	s := &stage{in: in, printer: printer}
	if err := s.openQueue(ctx, at, config, stop); err != nil {
		return nil, err
	}
	if s.target, err = startTarget(ctx, in.refusals); err != nil {
		return nil, err
	}
	stop.OnCleanup(s.target.server.Stop)
	s.fleet = &fleet{
		Fleet: programs.NewFleet(broken), dir: dir, env: childEnvironment(at.databaseURL, config), handlers: in.handlers(), target: s.target.server.URL(),
	}
	stop.OnCleanup(func(context.Context) error { return s.fleet.Stop(stopLimit) })
	if err := s.startFleet(ctx); err != nil {
		return nil, err
	}
	printer.say("built and started %d × cmd/worker and cmd/cron as processes of their own", workers)
	if opts.ui {
		if s.address, err = s.fleet.startUI(ctx); err != nil {
			return nil, err
		}
		printer.say("the dashboard is at %s", s.address)
	}
	return s, nil
}

// openServices finds or starts Postgres and the notifier and compiles meanwhile.
func openServices(ctx context.Context, opts options, dir string, printer *printer, stop *command.Cleanups) (*setting, error) {
	at := &setting{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		service, err := services.Postgres(ctx)
		if err != nil {
			return err
		}
		stop.OnCleanup(service.Stop)
		var drop func(context.Context) error
		if at.databaseURL, drop, err = createDatabase(ctx, service.URL); err != nil {
			return err
		}
		stop.OnCleanup(drop)
		printer.say("Postgres answers (%s); made a database of its own there and migrated it", service.Origin)
		return nil
	})
	group.Go(func() (err error) {
		if at.notifier, err = openNotifier(ctx, opts.notifier); err != nil {
			return err
		}
		stop.OnCleanup(at.notifier.stop)
		printer.say("the notifier is %s", at.notifier.origin)
		return nil
	})
	names := []string{programs.Worker, programs.Cron}
	if opts.ui {
		names = append(names, programs.Ctl)
	}
	group.Go(func() error { return programs.Build(ctx, dir, programs.Deployed(names...)) })
	return at, group.Wait()
}

// openQueue opens the queue as an emitting program does.
func (s *stage) openQueue(ctx context.Context, at *setting, config pubsubnotify.Config, stop *command.Cleanups) (err error) {
	if at.notifier.lasting {
		stop.OnCleanup(func(ctx context.Context) error { return deleteTopic(ctx, config) })
	}
	opened, err := programs.OpenEmitter(ctx, stop, at.databaseURL, "eventsv2-demo", 0, config)
	if err != nil {
		return err
	}
	s.pool, s.rules, s.emitter = opened.Pool, opened.Rules, newEmitter(opened.Queue)
	return nil
}

func (s *stage) startFleet(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.fleet.startCron(ctx) })
	for n := range workers {
		group.Go(func() error { return s.fleet.startWorker(ctx, fmt.Sprintf("worker-%d", n+1)) })
	}
	return group.Wait()
}

// childEnvironment configures the programs as a deployment would, except for shorter
// times: nobody wants to wait a minute until a lock expires.
func childEnvironment(databaseURL string, config pubsubnotify.Config) map[string]string {
	settings := map[string]string{
		"DATABASE_URL":          databaseURL,
		"DATABASE_MAX_CONNS":    "4",
		"LOCK_TIMEOUT":          lockTimeout.String(),
		"WORKER_HEARTBEAT":      (lockTimeout / 4).String(),
		"WORKER_CONCURRENCY":    "16",
		"WORKER_GRACE_PERIOD":   "5s",
		"RETAIN_HISTORY":        "true",
		"HISTORY_COMPLETED_FOR": "24h",
		"RELAY_INTERVAL":        "1s",
		"RELAY_LOST_AFTER":      "2s",
		"PORT":                  "0",
	}
	config.Create = false // it is there
	maps.Copy(settings, programs.PubSubEnvironment(config))
	return settings
}
