package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/harness"
	"eventsv2/test/services"
	"eventsv2/test/webtarget"
)

// The settings of the deployment; what is not here has its default value.
const (
	lockTimeout   = 10 * time.Second
	relayInterval = 10 * time.Second
	relayQuiet    = 20 * time.Second
	concurrency   = "100"
	projectID     = "soak"
	topic         = "events"
	subscription  = "workers"
	canvasCount   = 4
)

// stage is everything that a run needs.
type stage struct {
	harness.Cleanups

	opts options
	dir  string
	tell *harness.Reporter

	postgres, emulator *services.Service
	version            string // of Postgres
	pool               *pgxpool.Pool
	ledger             *ledger
	fleet              *fleet
	emitters           *emitters
	maintenance        *maintenance
	sampler            *sampler
	attacker           *attacker
	cron               cronchecker.Definition
}

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = 2 * time.Minute

// play is the whole run. Its result is nil when there is nothing to judge.
func play(ctx context.Context, opts options, dir string, tell *harness.Reporter) (found *result, err error) {
	s := &stage{opts: opts, dir: dir, tell: tell, ledger: newLedger()}
	defer func() { err = errors.Join(err, s.CleanUp(ctx, cleanupLimit)) }()
	// broken ends the run when the run itself fails.
	run, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	if err := s.setUp(run, broken); err != nil {
		return nil, err
	}
	loaded, err := s.load(run)
	// A signal ends the load; anything else that ends it early is a failure.
	if ctx.Err() == nil && run.Err() != nil {
		err = errors.Join(err, context.Cause(run))
	}
	// From here on a signal is no reason to stop: what was done is to be judged,
	// also when the run has failed.
	found, failure := s.verdict(context.WithoutCancel(ctx), loaded)
	return found, errors.Join(err, failure)
}

func (s *stage) setUp(ctx context.Context, broken context.CancelCauseFunc) error {
	s.tell.Report("building the programs; starting Postgres with fsync and the Pub/Sub emulator")
	if err := harness.Build(ctx, s.dir, map[string]string{
		programWorker: "eventsv2/cmd/worker", programCron: "eventsv2/cmd/cron",
	}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.startServices, s.prepareDatabase, s.prepareEmitters} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.startFleet(ctx, broken)
}

func (s *stage) startServices(ctx context.Context) (err error) {
	s.postgres, s.emulator, err = s.Servers(ctx)
	return err
}

func (s *stage) prepareDatabase(ctx context.Context) error {
	if _, err := migrations.Up(ctx, s.postgres.URL); err != nil {
		return err
	}
	pool, err := pgstore.Open(ctx, s.postgres.URL, "soak", emitterCount+4)
	if err != nil {
		return err
	}
	s.pool = pool
	s.OnCleanup(func(context.Context) error { pool.Close(); return nil })
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&s.version); err != nil {
		return fmt.Errorf("ask Postgres for its version: %w", err)
	}
	for _, statement := range checkpointsSQL() {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	s.cron, err = cronchecker.NewDefinitions(pool).Add(ctx, cronchecker.NewDefinition{
		Canvas: canvas(0), Name: cronName, Schedule: "* * * * *", Missed: cronchecker.MissedAll}, false)
	return err
}

// checkpointsSQL has Postgres complete a checkpoint between two of its crashes,
// as it does where crashes are rarer than here; see doc.go.
func checkpointsSQL() []string {
	return []string{"ALTER SYSTEM SET checkpoint_timeout = '1min'", "SELECT pg_reload_conf()"}
}

// canvas is one of the tenants.
func canvas(n int) eventqueue.CanvasID {
	return eventqueue.CanvasID(uuid.NewSHA1(uuid.Nil, []byte{byte(n)}))
}

func canvases() []eventqueue.CanvasID {
	all := make([]eventqueue.CanvasID, canvasCount)
	for n := range all {
		all[n] = canvas(n)
	}
	return all
}

func (s *stage) prepareEmitters(ctx context.Context) error {
	notifier, err := pubsubnotify.New(ctx, pubsubnotify.Config{ProjectID: projectID, Topic: topic, Subscription: subscription,
		Create: true, EmulatorHost: s.emulator.URL})
	if err != nil {
		return err
	}
	s.OnCleanup(func(context.Context) error { return notifier.Close() })
	queue, err := eventqueue.New(pgstore.New(s.pool), notifier, eventqueue.QueueConfig{})
	if err != nil {
		return err
	}
	s.OnCleanup(queue.Close)
	rules, err := control.NewRules(pgstore.New(s.pool), queue)
	if err != nil {
		return err
	}
	s.emitters = newEmitters(queue, s.ledger, canvases(), s.opts.rate)
	s.maintenance = &maintenance{rules: rules, pool: s.pool, canvases: canvases(), every: s.opts.every, tell: s.tell}
	return nil
}

func (s *stage) startFleet(ctx context.Context, broken context.CancelCauseFunc) error {
	web, err := webtarget.Start(ctx, target{s.ledger})
	if err != nil {
		return err
	}
	s.OnCleanup(web.Stop)
	handlers := filepath.Join(s.dir, "handlers.yaml")
	if err := writeHandlersFile(handlers, web.URL()); err != nil {
		return err
	}
	heard := &listener{ledger: s.ledger}
	s.fleet = &fleet{dir: s.dir, read: heard.listen, broken: broken, running: map[string]*process{}, env: map[string]string{
		"DATABASE_URL":         s.postgres.URL,
		"PUBSUB_PROJECT_ID":    projectID,
		"PUBSUB_TOPIC":         topic,
		"PUBSUB_SUBSCRIPTION":  subscription,
		"PUBSUB_CREATE":        "true",
		"PUBSUB_EMULATOR_HOST": s.emulator.URL,
		"LOCK_TIMEOUT":         lockTimeout.String(),
		"RELAY_INTERVAL":       relayInterval.String(),
		"RELAY_QUIET":          relayQuiet.String(),
		"WORKER_CONCURRENCY":   concurrency,
		"HANDLERS_FILE":        handlers,
		"PORT":                 "0",
		"LOG_LEVEL":            "warn", // a line per event would fill the disk in a day
	}}
	s.OnCleanup(s.fleet.stop)
	for _, name := range append(longLived(), juniorWorker) {
		if err := s.fleet.start(name); err != nil {
			return err
		}
	}
	s.sampler = &sampler{pool: s.pool, fleet: s.fleet, heard: heard, series: map[measure][]point{}}
	s.attacker = &attacker{fleet: s.fleet, postgres: s.postgres, emulator: s.emulator, pool: s.pool, tell: s.tell, counts: map[string]int{}}
	return nil
}

// load emits, attacks and measures for the time that was asked for, less when ctx
// ends, and returns how long that was.
func (s *stage) load(ctx context.Context) (time.Duration, error) {
	s.tell.Report("the load begins: %s, %d events a second, a fault every %s", s.opts.load(), s.opts.rate, s.opts.every)
	s.sampler.began = time.Now()
	limited, cancel := context.WithTimeout(ctx, s.opts.load())
	defer cancel()
	var running sync.WaitGroup
	var attack error
	running.Go(func() {
		attack = s.attacker.run(limited, s.opts.every)
		if attack != nil {
			cancel()
		}
	})
	running.Go(func() { s.emitters.run(limited) })
	running.Go(func() { s.maintenance.run(limited) })
	running.Go(func() { s.sampler.run(limited, sampleEvery(s.opts.load())) })
	running.Go(func() { s.sayProgress(limited) })
	running.Wait()
	return min(time.Since(s.sampler.began), s.opts.load()), attack
}

// progressEvery is the time between two lines for whoever watches.
const progressEvery = 2 * time.Minute

func (s *stage) sayProgress(ctx context.Context) {
	for pause(ctx, progressEvery) {
		issued, refused, again := s.ledger.progress()
		s.tell.Report("%d events; %d calls refused, %d runs again; %.0f rows wait, in %s and indexes of %s; library: %.0f goroutines, %s; worker-1: %s, %.0f files",
			issued, refused, again, s.sampler.last(measure{rows, "events_v2"}),
			inBytes.format(s.sampler.last(measure{tableSize, "events_v2"})), inBytes.format(s.sampler.last(measure{indexSize, "events_v2"})),
			s.sampler.last(measure{goroutines, longLivedLibrary}), inBytes.format(s.sampler.last(measure{memory, longLivedLibrary})),
			inBytes.format(s.sampler.last(measure{memory, longLivedWorker})), s.sampler.last(measure{files, longLivedWorker}))
	}
}
