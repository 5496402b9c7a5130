package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"time"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/attack/chaos/check"
	"eventsv2/test/attack/chaos/emit"
	"eventsv2/test/attack/chaos/growth"
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/pubsubproxy"
)

// play is the whole run. Its result is nil when there is nothing to check.
func play(ctx context.Context, opts options, dir string, progress *command.Reporter) (harness.Result, error) {
	s := &stage{opts: opts, Deployment: harness.Deployment{Name: "chaos", Dir: dir, Progress: progress},
		canvases: harness.Canvases(opts.seed, emit.CanvasCount+1), proxies: harness.NewProxies(), faults: &check.Faults{}, attacks: newTally(),
		postgresOf: map[string]*harness.Proxy{}, notifierOf: map[string]*harness.Proxy{}, proxyOf: map[string]*pubsubproxy.Server{}}
	return s.Play(ctx, s.setUp, s.load, s.verdict)
}

// setUp starts the services and prepares everything else.
func (s *stage) setUp(ctx context.Context, broken context.CancelCauseFunc) error {
	packages := programs.Deployed(programs.Worker, programs.Cron)
	packages[programChaosWorker] = "eventsv2/test/attack/chaos/worker"
	if err := s.Open(ctx, packages); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.prepareDatabase, s.openProxies} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return s.preparePrograms(ctx, broken)
}

// prepareDatabase installs what records all changes, and the cron definition.
func (s *stage) prepareDatabase(ctx context.Context) error {
	// The record of half an hour takes longer to read than any statement of the
	// queue may last.
	pool, err := pgstore.Open(ctx, s.Postgres.URL+"&statement_timeout=0", check.Shifter, 6)
	if err != nil {
		return err
	}
	s.control = pool
	s.OnCleanup(func(context.Context) error { pool.Close(); return nil })
	if _, err := pool.Exec(ctx, check.AuditSQL); err != nil {
		return fmt.Errorf("install the record of the database: %w", err)
	}
	for _, statement := range s.checkpointsSQL() {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	random := rand.New(rand.NewPCG(uint64(s.opts.seed), 0xdef))
	for range len(defaults()) {
		if err := s.others.draw(ctx, pool, random); err != nil {
			return err
		}
	}
	definition, err := cronchecker.NewDefinitions(pool).Add(ctx, cronchecker.NewDefinition{
		Canvas: s.canvases[0], Name: task.CronName, Schedule: "* * * * *", Missed: cronchecker.MissedAll,
	}, false)
	if err != nil {
		return err
	}
	s.cron = check.CronEvidence{ID: int64(definition.ID), StartsAt: definition.StartsAt}
	return nil
}

// checkpointsSQL has Postgres complete a checkpoint between two of its crashes in a steady run, as it does
// where crashes are rarer: a crash makes it lose track of which pages of an index are free, as far as it
// has learnt that since its last complete checkpoint, and the index grows until the next vacuum.
func (s *stage) checkpointsSQL() []string {
	if !s.opts.steady {
		return nil
	}
	return []string{"ALTER SYSTEM SET checkpoint_timeout = '1min'", "SELECT pg_reload_conf()"}
}

// openProxies puts one proxy before each service for each program.
func (s *stage) openProxies(ctx context.Context) error {
	database, err := url.Parse(s.Postgres.URL)
	if err != nil {
		return fmt.Errorf("the database URL of our own Postgres: %w", err)
	}
	for _, name := range slices.Concat(workerSlots(), cronSlots(), []string{check.SlotEmitter}) {
		if s.postgresOf[name], err = s.proxies.Open(name+"-postgres", database.Host); err != nil {
			return err
		}
		if s.proxyOf[name], err = pubsubproxy.Open(ctx, s.Emulator.URL); err != nil {
			return err
		}
		if s.notifierOf[name], err = s.proxies.Open(name+"-pubsub", s.proxyOf[name].Address()); err != nil {
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
	s.fleet = &fleet{deployment: &s.Deployment, faults: s.faults, slots: map[string]*slot{}, broken: broken}
	if s.opts.steady {
		s.fleet.reports = map[string]*growth.Listener{}
		for _, name := range longLived() {
			s.fleet.reports[name] = nil
		}
		heard := &growth.Listener{}
		s.fleet.reports["w1"] = heard // the others have no code of ours
		s.sampler = &growth.Sampler{Pool: s.control, Processes: s.fleet.lasting, Reports: map[string]*growth.Listener{"w1": heard}, Apart: s.untouchable()}
	}
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
	databaseURL, err := s.postgresOf[check.SlotEmitter].Through(s.Postgres.URL, check.SlotEmitter)
	if err != nil {
		return err
	}
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, databaseURL, check.SlotEmitter, 2*emit.Count, s.PubSub(s.notifierOf[check.SlotEmitter].Address()))
	if err != nil {
		return err
	}
	limits, err := operate.NewConcurrencyLimits(pgstore.New(opened.Pool), opened.Queue)
	if err != nil {
		return err
	}
	if err := s.limitHandler(ctx, limits); err != nil {
		return err
	}
	if s.rateLimits, err = operate.NewRateLimits(pgstore.New(opened.Pool), opened.Queue); err != nil {
		return err
	}
	if err := s.limitRates(ctx); err != nil {
		return err
	}
	queue, own, err := s.ownPool(ctx, databaseURL)
	if err != nil {
		return err
	}
	if s.emitters, err = emit.New(opened.Queue, queue, opened.Pool, own, s.opts.seed, s.opts.rate, s.canvases); err != nil {
		return err
	}
	s.OnCleanup(func(context.Context) error { return s.emitters.Close() })
	s.storms = &storms{rules: opened.Rules, seed: s.opts.seed, scopes: s.scopes()}
	return s.prepareOperator(ctx)
}

func (s *stage) prepareOperator(ctx context.Context) error {
	databaseURL, err := s.postgresOf[check.SlotEmitter].Through(s.Postgres.URL, check.SlotOperator)
	if err != nil {
		return err
	}
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, databaseURL, check.SlotOperator, 2, s.PubSub(s.notifierOf[check.SlotEmitter].Address()))
	if err != nil {
		return err
	}
	store := pgstore.New(opened.Pool)
	changer, err := operate.NewChanger(store, opened.Queue)
	if err != nil {
		return err
	}
	operations, err := operate.NewOperations(store, opened.Queue, nil)
	if err != nil {
		return err
	}
	s.operator = &operator{changer: changer, operations: operations, pool: s.control, scopes: s.scopes(), spared: s.untouchable(), seed: s.opts.seed}
	return nil
}

// load runs the fleet, the emitters, the storms and the attack for the time
// that was asked for, less when ctx ends.
func (s *stage) load(ctx context.Context) error {
	s.fleet.start()
	s.OnCleanup(func(context.Context) error { return s.fleet.stop() })
	plan, began := makePlan(s.opts.seed, s.opts.load()), time.Now()
	if s.opts.steady {
		plan = steadyPlan(s.opts.seed, s.opts.load())
	}
	s.Progress.Report("the load begins: %s, %d events a second, %d faults planned, seed %d", s.opts.load(), s.opts.rate, len(plan), s.opts.seed)
	limited, cancel := context.WithTimeout(ctx, s.opts.load())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { (&attacker{s}).run(limited, plan, began) })
	running.Go(func() { s.emitters.Run(limited) })
	running.Go(func() { s.storms.run(limited) })
	running.Go(func() { s.operator.run(limited) })
	running.Go(func() { shift(limited, s.control, s.untouchable()) })
	running.Go(func() { s.emitters.Backpressure(limited, s.control) })
	running.Go(func() { probe(limited, s.control, s.faults) })
	if s.sampler != nil {
		running.Go(func() { s.sampler.Run(limited, s.opts.load()) })
	}
	running.Wait()
	return nil
}
