package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/time/rate"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/pubsubnotify"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/oracle"
	"eventsv2/test/programs"
	"eventsv2/test/pubsubproxy"
)

// The settings of the run: everything is short, so that much happens.
const (
	lockTimeout    = 5 * time.Second
	relayInterval  = 2 * time.Second
	relayLostAfter = 3 * time.Second
	projectID      = "chaos"
	topicID        = "events"
	subscription   = "workers"
	canvasCount    = 8
)

// pubsub is where the topic and the subscription are, by way of some address.
func pubsub(address string) pubsubnotify.Config {
	return pubsubnotify.Config{ProjectID: projectID, Topic: topicID, Subscription: subscription, Create: true, EmulatorHost: address}
}

// environment is what all programs get beside their own connections.
func environment() map[string]string {
	return map[string]string{
		"LOCK_TIMEOUT":        lockTimeout.String(),
		"WORKER_CONCURRENCY":  "60",
		"WORKER_CLAIM_BATCH":  strconv.Itoa(claimBatch),
		"WORKER_GRACE_PERIOD": "2s",
		"RETAIN_HISTORY":      "true",
		"RELAY_INTERVAL":      relayInterval.String(),
		"RELAY_LOST_AFTER":    relayLostAfter.String(),
		"PORT":                "0",
		"LOG_LEVEL":           "info",
		"LOG_EVENTS":          "all",
	}
}

// stage is everything that a run needs, set up.
type stage struct {
	command.Cleanups

	opts options
	dir  string
	tell *command.Reporter

	postgres, emulator     *server
	databaseURL            string
	control                *pgxpool.Pool // direct, for what is no part of the queue
	proxies                *harness.Proxies
	postgresOf, notifierOf map[string]*harness.Proxy
	proxyOf                map[string]*pubsubproxy.Server
	faults                 *faults
	fleet                  *fleet
	emitters               *emitters
	storms                 *storms
	operator               *operator
	cron                   cronEvidence
	limits                 []oracle.LimitChange
	rateLimits             *control.RateLimits
	rates                  []oracle.RateChange
}

// cleanupLimit bounds the stopping of everything.
const cleanupLimit = time.Minute

// play is the whole run. Its result is nil when there is nothing to judge.
func play(ctx context.Context, opts options, dir string, tell *command.Reporter) (result *result, err error) {
	s := &stage{opts: opts, dir: dir, tell: tell, proxies: harness.NewProxies(), faults: newFaults(),
		postgresOf: map[string]*harness.Proxy{}, notifierOf: map[string]*harness.Proxy{}, proxyOf: map[string]*pubsubproxy.Server{}}
	defer func() { err = errors.Join(err, s.CleanUp(ctx, cleanupLimit)) }()
	// broken ends the run when the run itself fails.
	run, broken := context.WithCancelCause(ctx)
	defer broken(nil)
	if err := s.setUp(run, broken); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := s.load(run, broken, began); err != nil {
		return nil, err
	}
	loaded := time.Since(began)
	// From here on a signal is no reason to stop: what was done is to be judged.
	after := context.WithoutCancel(ctx)
	if err := s.settle(after); err != nil {
		return nil, err
	}
	return s.verdict(after, loaded)
}

// setUp starts the services and prepares everything else.
func (s *stage) setUp(ctx context.Context, broken context.CancelCauseFunc) error {
	for _, step := range []func(context.Context) error{s.build, s.startServices, s.prepareDatabase, s.openProxies} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.preparePrograms(ctx, broken)
}

// build compiles what the fleet runs.
func (s *stage) build(ctx context.Context) error {
	s.tell.Report("building the programs")
	packages := programs.Deployed(programs.Worker, programs.Cron)
	packages[programChaosWorker] = "eventsv2/test/attack/chaos/worker"
	return programs.Build(ctx, s.dir, packages)
}

func (s *stage) startServices(ctx context.Context) error {
	s.tell.Report("starting Postgres with fsync, and the Pub/Sub emulator")
	postgres, emulator, err := harness.Servers(ctx, &s.Cleanups)
	if err != nil {
		return err
	}
	s.postgres, s.emulator = &server{Service: postgres}, &server{Service: emulator}
	s.databaseURL = postgres.URL
	return nil
}

// prepareDatabase applies the schema and what records its changes.
func (s *stage) prepareDatabase(ctx context.Context) error {
	if _, err := migrations.Up(ctx, s.databaseURL); err != nil {
		return err
	}
	// The record of half an hour takes longer to read than any statement of the
	// queue may last.
	pool, err := pgstore.Open(ctx, s.databaseURL+"&statement_timeout=0", shifter, 6)
	if err != nil {
		return err
	}
	s.control = pool
	s.OnCleanup(func(context.Context) error { pool.Close(); return nil })
	if _, err := pool.Exec(ctx, auditSQL); err != nil {
		return fmt.Errorf("install the record of the database: %w", err)
	}
	definition, err := cronchecker.NewDefinitions(pool).Add(ctx, cronchecker.NewDefinition{
		Canvas: s.canvas(0), Name: task.CronName, Schedule: "* * * * *", Missed: cronchecker.MissedAll,
	}, false)
	if err != nil {
		return err
	}
	s.cron = cronEvidence{id: int64(definition.ID), startsAt: definition.StartsAt}
	return nil
}

// canvas is one of the tenants, the same for the same seed.
func (s *stage) canvas(n int) eventqueue.CanvasID {
	return eventqueue.CanvasID(uuid.NewSHA1(uuid.Nil, []byte(strconv.FormatInt(s.opts.seed, 10)+"/"+strconv.Itoa(n))))
}

func (s *stage) canvases() []eventqueue.CanvasID {
	var all []eventqueue.CanvasID
	for n := range canvasCount {
		all = append(all, s.canvas(n))
	}
	return all
}

// openProxies puts one proxy before each service for each program.
func (s *stage) openProxies(ctx context.Context) error {
	database, err := url.Parse(s.databaseURL)
	if err != nil {
		return fmt.Errorf("the database URL of our own Postgres: %w", err)
	}
	for _, name := range slices.Concat(workerSlots(), cronSlots(), []string{slotEmitter}) {
		if s.postgresOf[name], err = s.proxies.Open(name+"-postgres", database.Host); err != nil {
			return err
		}
		if s.proxyOf[name], err = pubsubproxy.Open(ctx, s.emulator.URL); err != nil {
			return err
		}
		if s.notifierOf[name], err = s.proxies.Open(name+"-bell", s.proxyOf[name].Address()); err != nil {
			return err
		}
	}
	s.OnCleanup(func(context.Context) error {
		for _, p := range slices.Concat(slices.Collect(maps.Values(s.postgresOf)), slices.Collect(maps.Values(s.notifierOf))) {
			p.Close()
		}
		var err error
		for _, b := range s.proxyOf {
			err = errors.Join(err, b.Close())
		}
		return err
	})
	return nil
}

// preparePrograms makes the fleet, the emitters and the storms.
func (s *stage) preparePrograms(ctx context.Context, broken context.CancelCauseFunc) error {
	s.fleet = &fleet{dir: s.dir, databaseURL: s.databaseURL, faults: s.faults, slots: map[string]*slot{}, broken: broken}
	target, err := startTarget(ctx, s.fleet.journal)
	if err != nil {
		return err
	}
	s.OnCleanup(target.stop)
	s.fleet.target = target
	programs := map[string]string{"w1": programChaosWorker, "w2": programChaosWorker, "w3": programChaosWorker,
		"w4": programs.Worker, "c1": programs.Cron, "c2": programs.Cron}
	for name, binary := range programs {
		s.fleet.slots[name] = &slot{name: name, program: binary, postgres: s.postgresOf[name], notifier: s.notifierOf[name]}
	}
	return s.prepareEmitters(ctx)
}

func (s *stage) prepareEmitters(ctx context.Context) error {
	databaseURL, err := s.postgresOf[slotEmitter].Through(s.databaseURL, slotEmitter)
	if err != nil {
		return err
	}
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, databaseURL, slotEmitter, 2*emitterCount, pubsub(s.notifierOf[slotEmitter].Address()))
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(opened.Pool)
	s.OnCleanup(func(context.Context) error { return db.Close() })
	limits, err := control.NewConcurrencyLimits(pgstore.New(opened.Pool), opened.Queue)
	if err != nil {
		return err
	}
	if err := s.limitHandler(ctx, limits); err != nil {
		return err
	}
	if s.rateLimits, err = control.NewRateLimits(pgstore.New(opened.Pool), opened.Queue); err != nil {
		return err
	}
	if err := s.limitRates(ctx); err != nil {
		return err
	}
	s.emitters = newEmitters(opened.Queue, opened.Pool, db, s.opts, s.canvases())
	s.storms = &storms{rules: opened.Rules, seed: s.opts.seed, scopes: s.scopes()}
	return s.prepareOperator(ctx)
}

func (s *stage) prepareOperator(ctx context.Context) error {
	databaseURL, err := s.postgresOf[slotEmitter].Through(s.databaseURL, slotOperator)
	if err != nil {
		return err
	}
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, databaseURL, slotOperator, 2, pubsub(s.notifierOf[slotEmitter].Address()))
	if err != nil {
		return err
	}
	changer, err := control.NewChanger(pgstore.New(opened.Pool), opened.Queue)
	if err != nil {
		return err
	}
	requeuer, err := control.NewRequeuer(pgstore.New(opened.Pool), opened.Queue, 0)
	if err != nil {
		return err
	}
	s.operator = &operator{changer: changer, requeuer: requeuer, pool: s.control, scopes: s.scopes(), seed: s.opts.seed}
	return nil
}

func newEmitters(queue *eventqueue.Queue, pool *pgxpool.Pool, db *sql.DB, opts options, canvases []eventqueue.CanvasID) *emitters {
	// A burst lets the emitters catch up after an outage.
	limit := rate.NewLimiter(rate.Limit(opts.rate), 10*opts.rate+100)
	limit.AllowN(time.Now(), 10*opts.rate) // but not at the beginning
	return &emitters{queue: queue, pool: pool, db: db, limit: limit, seed: opts.seed, scopes: canvases,
		acknowledgements: map[string]acknowledgement{}, forms: map[string]int{}, repeats: map[string]repeat{}, ordered: map[string]emission{},
		mostWaiting: backlogSeconds * opts.rate}
}

// scopes are what may be paused and blocked.
func (s *stage) scopes() []eventqueue.Scope {
	var all []eventqueue.Scope
	for _, canvas := range s.canvases() {
		for _, h := range task.Handlers() {
			if h.Key.Module == task.Module {
				all = append(all, eventqueue.Scope{Canvas: canvas, Module: h.Key.Module, Name: h.Key.Name})
			}
		}
	}
	return all
}

// load runs the fleet, the emitters, the storms and the attack for the time
// that was asked for, less when ctx ends.
func (s *stage) load(ctx context.Context, broken context.CancelCauseFunc, began time.Time) error {
	s.fleet.start()
	s.OnCleanup(func(context.Context) error { return s.fleet.stop() })
	plan := makePlan(s.opts.seed, s.opts.load())
	s.tell.Report("the load begins: %s, %d events a second, %d faults planned, seed %d", s.opts.load(), s.opts.rate, len(plan), s.opts.seed)
	limited, cancel := context.WithTimeout(ctx, s.opts.load())
	defer cancel()
	var running sync.WaitGroup
	attack := &attacker{fleet: s.fleet, postgres: s.postgres, emulator: s.emulator, postgresOf: s.postgresOf, notifierOf: s.notifierOf, proxyOf: s.proxyOf,
		faults: s.faults, say: func(text string) { s.tell.Report("%s", text) }, broken: broken}
	running.Go(func() { attack.run(limited, plan, began) })
	running.Go(func() { s.emitters.run(limited) })
	running.Go(func() { s.storms.run(limited) })
	running.Go(func() { s.operator.run(limited) })
	running.Go(func() { shift(limited, s.control) })
	running.Go(func() { s.emitters.backpressure(limited, s.control) })
	running.Go(func() { probe(limited, s.control, s.faults) })
	running.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}
