package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/migrations"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/services"
	"eventsv2/test/webtarget"
)

// The settings of the deployment; what is not here has its default value.
const (
	lockTimeout    = 10 * time.Second
	relayInterval  = 10 * time.Second
	relayLostAfter = 20 * time.Second
	concurrency    = "100"
	projectID      = "soak"
	topic          = "events"
	subscription   = "workers"
	canvasCount    = 4
)

// stage is everything that a run needs.
type stage struct {
	command.Cleanups

	opts options
	dir  string
	tell *command.Reporter

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
func play(ctx context.Context, opts options, dir string, tell *command.Reporter) (found *result, err error) {
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
	if err := programs.Build(ctx, s.dir, programs.Deployed(programs.Worker, programs.Cron)); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.startServices, s.prepareQueue} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.startFleet(ctx, broken)
}

func (s *stage) startServices(ctx context.Context) (err error) {
	s.postgres, s.emulator, err = harness.Servers(ctx, &s.Cleanups)
	return err
}

func (s *stage) prepareQueue(ctx context.Context) error {
	if _, err := migrations.Up(ctx, s.postgres.URL); err != nil {
		return err
	}
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, s.postgres.URL, "soak", emitterCount+4, s.pubsub())
	if err != nil {
		return err
	}
	pool := opened.Pool
	s.pool = pool
	s.emitters = newEmitters(opened.Queue, s.ledger, canvases(), s.opts.rate)
	s.maintenance = &maintenance{rules: opened.Rules, pool: pool, canvases: canvases(), every: s.opts.every, tell: s.tell}
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

// pubsub is where the topic and the subscription are.
func (s *stage) pubsub() pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: projectID, Topic: topic, Subscription: subscription, Create: true, EmulatorHost: s.emulator.URL}
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
	env := programs.PubSubEnvironment(s.pubsub())
	maps.Copy(env, map[string]string{
		"DATABASE_URL":       s.postgres.URL,
		"LOCK_TIMEOUT":       lockTimeout.String(),
		"RELAY_INTERVAL":     relayInterval.String(),
		"RELAY_LOST_AFTER":   relayLostAfter.String(),
		"WORKER_CONCURRENCY": concurrency,
		"HANDLERS_FILE":      handlers,
		"PORT":               "0",
		"LOG_LEVEL":          "warn", // a line per event would fill the disk in a day
	})
	s.fleet = &fleet{Fleet: programs.NewFleet(broken), dir: s.dir, read: heard.listen, env: env}
	s.OnCleanup(func(context.Context) error { return s.fleet.Stop(stopLimit) })
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
	for backoff.Sleep(ctx, progressEvery) {
		issued, refused, again := s.ledger.progress()
		s.tell.Report("%d events; %d calls refused, %d runs again; %.0f rows wait, in %s and indexes of %s; library: %.0f goroutines, %s; worker-1: %s, %.0f files",
			issued, refused, again, s.sampler.last(measure{rows, "events_v2"}),
			inBytes.format(s.sampler.last(measure{tableSize, "events_v2"})), inBytes.format(s.sampler.last(measure{indexSize, "events_v2"})),
			s.sampler.last(measure{goroutines, longLivedLibrary}), inBytes.format(s.sampler.last(measure{memory, longLivedLibrary})),
			inBytes.format(s.sampler.last(measure{memory, longLivedWorker})), s.sampler.last(measure{files, longLivedWorker}))
	}
}
