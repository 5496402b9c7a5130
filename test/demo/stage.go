package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/pubsubnotify"
	"eventsv2/test/services"
)

// workers is how many are started, and as many run again after the crash.
const workers = 3

// stage is everything that runs, and what is known about it.
type stage struct {
	in      *input
	story   *story
	pool    *pgxpool.Pool
	emitter *emitter
	rules   *control.Rules
	target  *target
	fleet   *fleet
}

// setting is what the stage stands on.
type setting struct {
	databaseURL string
	doorbell    *doorbell
}

// setUp starts everything and leaves the stopping to stop.
func setUp(ctx context.Context, opts options, in *input, dir string, story *story,
	stop *cleanup, broken context.CancelCauseFunc) (*stage, error) {
	at, err := openServices(ctx, opts, dir, story, stop)
	if err != nil {
		return nil, err
	}
	topic := "events-v2-demo-" + strings.ToLower(rand.Text()[:10])
	doorbell := pubsubnotify.Config{ProjectID: "eventsv2-demo", Topic: topic, Subscription: topic,
		Create: true, EmulatorHost: at.doorbell.host}
	s := &stage{in: in, story: story}
	if err := s.openQueue(ctx, at, doorbell, stop); err != nil {
		return nil, err
	}
	if s.target, err = startTarget(ctx, in.refusals); err != nil {
		return nil, err
	}
	stop.add(s.target.server.Stop)
	s.fleet = &fleet{
		dir: dir, env: childEnvironment(at.databaseURL, doorbell), handlers: in.handlers(), target: s.target.server.URL(), broken: broken,
	}
	stop.add(s.fleet.stop)
	if err := s.startFleet(ctx); err != nil {
		return nil, err
	}
	story.say("built and started %d × cmd/worker and cmd/cron as processes of their own", workers)
	return s, nil
}

// openServices finds or starts Postgres and the notifier and compiles meanwhile.
func openServices(ctx context.Context, opts options, dir string, story *story, stop *cleanup) (*setting, error) {
	at := &setting{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		service, err := services.Postgres(ctx)
		if err != nil {
			return err
		}
		stop.add(service.Stop)
		var drop func(context.Context) error
		if at.databaseURL, drop, err = createDatabase(ctx, service.URL); err != nil {
			return err
		}
		stop.add(drop)
		story.say("Postgres answers (%s); made a database of its own there and migrated it", service.Origin)
		return nil
	})
	group.Go(func() (err error) {
		if at.doorbell, err = openDoorbell(ctx, opts.notifier); err != nil {
			return err
		}
		stop.add(at.doorbell.stop)
		story.say("the doorbell is %s", at.doorbell.origin)
		return nil
	})
	group.Go(func() error { return buildPrograms(ctx, dir) })
	return at, group.Wait()
}

// openQueue is what an emitting program does.
func (s *stage) openQueue(ctx context.Context, at *setting, doorbell pubsubnotify.Config, stop *cleanup) (err error) {
	if s.pool, err = pgstore.Open(ctx, at.databaseURL, "eventsv2-demo", 0); err != nil {
		return err
	}
	stop.add(func(context.Context) error { s.pool.Close(); return nil })
	notifier, err := pubsubnotify.New(ctx, doorbell)
	if err != nil {
		return err
	}
	if at.doorbell.lasting {
		stop.add(func(ctx context.Context) error { return deleteTopic(ctx, doorbell) })
	}
	stop.add(func(context.Context) error { return notifier.Close() })
	store := pgstore.New(s.pool)
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		return err
	}
	stop.add(queue.Close)
	s.emitter = newEmitter(queue)
	s.rules, err = control.NewRules(store, queue)
	return err
}

func (s *stage) startFleet(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.fleet.startCron(ctx) })
	for n := range workers {
		group.Go(func() error { return s.fleet.startWorker(ctx, fmt.Sprintf("worker-%d", n+1)) })
	}
	return group.Wait()
}

// childEnvironment configures the programs as a deployment would, but for the
// times: a reader does not want to wait a minute for a lock to expire.
func childEnvironment(databaseURL string, doorbell pubsubnotify.Config) map[string]string {
	return map[string]string{
		"DATABASE_URL":         databaseURL,
		"DATABASE_MAX_CONNS":   "4",
		"PUBSUB_EMULATOR_HOST": doorbell.EmulatorHost,
		"PUBSUB_PROJECT_ID":    doorbell.ProjectID,
		"PUBSUB_TOPIC":         doorbell.Topic,
		"PUBSUB_SUBSCRIPTION":  doorbell.Subscription,
		"LOCK_TIMEOUT":         lockTimeout.String(),
		"WORKER_HEARTBEAT":     (lockTimeout / 4).String(),
		"WORKER_CONCURRENCY":   "16",
		"WORKER_GRACE_PERIOD":  "5s",
		"RETAIN_HISTORY":       "true",
		"RELAY_INTERVAL":       "1s",
		"RELAY_QUIET":          "2s",
		"PORT":                 "0",
	}
}
