package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/cronchecker"
	"eventsv2/internal/backoff"
	"eventsv2/test/attack/harness"
	"eventsv2/test/command"
	"eventsv2/test/programs"
	"eventsv2/test/webtarget"
)

// The settings of the deployment; what is not here has its default value.
const (
	lockTimeout    = 10 * time.Second
	relayInterval  = 10 * time.Second
	relayLostAfter = 20 * time.Second
	concurrency    = "100"
	canvasCount    = 4
)

// The processes. The long-lived programs live through the whole run, so that what grows in
// them can be seen; the junior is killed and restarted.
const (
	longLivedWorker  = "worker-1"
	juniorWorker     = "worker-2"
	longLivedCron    = "cron"
	longLivedLibrary = "library"
)

func longLived() []string { return []string{longLivedWorker, longLivedCron, longLivedLibrary} }

// stopLimit is how long a process may take to end after SIGTERM: its grace
// period, and what a busy machine adds.
const stopLimit = 30 * time.Second

// stage is everything that a run needs.
type stage struct {
	harness.Deployment

	opts        options
	where       string // the run takes place
	pool        *pgxpool.Pool
	ledger      *ledger
	fleet       *programs.Fleet
	env         map[string]string // of the processes
	heard       *listener
	emitters    *emitters
	maintenance *maintenance
	sampler     *sampler
	attacker    *attacker
	cron        cronchecker.Definition
}

// play is the whole run. Its result is nil when there is nothing to check.
func play(ctx context.Context, opts options, dir string, progress *command.Reporter) (harness.Result, error) {
	s := &stage{opts: opts, Deployment: harness.Deployment{Name: "soak", Dir: dir, Progress: progress}, ledger: newLedger()}
	return s.Play(ctx, s.setUp, s.load, s.verdict)
}

func (s *stage) setUp(ctx context.Context, broken context.CancelCauseFunc) error {
	if err := s.Open(ctx, programs.Deployed(programs.Worker, programs.Cron)); err != nil {
		return err
	}
	if err := s.prepareQueue(ctx); err != nil {
		return err
	}
	return s.startFleet(ctx, broken)
}

// checkpointsSQL has Postgres complete a checkpoint between two of its crashes,
// as it does where crashes are rarer than here; see doc.go.
func checkpointsSQL() []string {
	return []string{"ALTER SYSTEM SET checkpoint_timeout = '1min'", "SELECT pg_reload_conf()"}
}

func (s *stage) prepareQueue(ctx context.Context) error {
	opened, err := programs.OpenEmitter(ctx, &s.Cleanups, s.Postgres.URL, "soak", emitterCount+4, s.PubSub(s.Emulator.URL))
	if err != nil {
		return err
	}
	s.pool, s.where = opened.Pool, s.Where(ctx, opened.Pool)
	canvases := harness.Canvases(0, canvasCount)
	s.emitters = newEmitters(opened.Queue, s.ledger, canvases, s.opts.Rate)
	s.maintenance = &maintenance{rules: opened.Rules, pool: s.pool, canvases: canvases, every: s.opts.every, progress: s.Progress}
	for _, statement := range checkpointsSQL() {
		if _, err := s.pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	s.cron, err = cronchecker.NewDefinitions(s.pool).Add(ctx, cronchecker.NewDefinition{
		Canvas: canvases[0], Name: cronName, Schedule: "* * * * *", Missed: cronchecker.MissedAll}, false)
	return err
}

func (s *stage) startFleet(ctx context.Context, broken context.CancelCauseFunc) error {
	web, err := webtarget.Start(ctx, target{s.ledger})
	if err != nil {
		return err
	}
	s.OnCleanup(web.Stop)
	handlersFile := filepath.Join(s.Dir, "handlers.yaml")
	if err := webtarget.WriteHandlersFile(handlersFile, web.URL(), handlers()); err != nil {
		return err
	}
	s.env = programs.PubSubEnvironment(s.PubSub(s.Emulator.URL))
	maps.Copy(s.env, map[string]string{
		"DATABASE_URL":       s.Postgres.URL,
		"LOCK_TIMEOUT":       lockTimeout.String(),
		"RELAY_INTERVAL":     relayInterval.String(),
		"RELAY_LOST_AFTER":   relayLostAfter.String(),
		"WORKER_CONCURRENCY": concurrency,
		"HANDLERS_FILE":      handlersFile,
		"PORT":               "0",
		"CRON_RECORDS_FOR":   "10m",
		"LOG_LEVEL":          "warn", // a line per event would fill the disk in a day
	})
	s.heard = &listener{ledger: s.ledger}
	s.fleet = programs.NewFleet(broken)
	s.OnCleanup(func(context.Context) error { return s.fleet.Stop(stopLimit) })
	for _, name := range append(longLived(), juniorWorker) {
		if err := s.start(name); err != nil {
			return err
		}
	}
	s.sampler = &sampler{pool: s.pool, fleet: s.fleet, heard: s.heard, series: map[measure][]point{}}
	s.attacker = &attacker{stage: s, counts: map[string]int{}}
	return nil
}

// start starts the process of a name.
func (s *stage) start(name string) error {
	p := programs.Program{Name: name, Path: filepath.Join(s.Dir, programs.Worker), Log: filepath.Join(s.Dir, name+".log"), Env: programs.Environment(s.env)}
	switch name {
	case longLivedLibrary:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
		p.Path, p.Read, p.Env = self, s.heard.listen, append(p.Env, roleVariable+"="+roleLibrary)
	case longLivedCron:
		p.Path = filepath.Join(s.Dir, programs.Cron)
	}
	_, err := s.fleet.Start(p)
	return err
}

// load emits, attacks and measures for the time that was asked for, less when ctx ends.
func (s *stage) load(ctx context.Context) error {
	s.Progress.Report("the load begins: %s, %d events a second, a fault every %s", s.opts.load(), s.opts.Rate, s.opts.every)
	s.sampler.began = time.Now()
	limited, cancel := context.WithTimeout(ctx, s.opts.load())
	defer cancel()
	var running sync.WaitGroup
	var attack error
	running.Go(func() {
		if attack = s.attacker.run(limited, s.opts.every); attack != nil {
			cancel()
		}
	})
	running.Go(func() { s.emitters.run(limited) })
	running.Go(func() { s.maintenance.run(limited) })
	running.Go(func() { s.sampler.run(limited, sampleEvery(s.opts.load())) })
	running.Go(func() { s.reportProgress(limited) })
	running.Wait()
	return attack
}

// progressEvery is the time between two lines for whoever watches.
const progressEvery = 2 * time.Minute

func (s *stage) reportProgress(ctx context.Context) {
	for backoff.Sleep(ctx, progressEvery) {
		issued, refused, again := s.ledger.progress()
		s.Progress.Report("%d events; %d calls refused, %d runs again; %.0f rows wait, in %s and indexes of %s; library: %.0f goroutines, %s; worker-1: %s, %.0f files",
			issued, refused, again, s.sampler.last(measure{rows, "events_v2"}),
			inBytes.format(s.sampler.last(measure{tableSize, "events_v2"})), inBytes.format(s.sampler.last(measure{indexSize, "events_v2"})),
			s.sampler.last(measure{goroutines, longLivedLibrary}), inBytes.format(s.sampler.last(measure{memory, longLivedLibrary})),
			inBytes.format(s.sampler.last(measure{memory, longLivedWorker})), s.sampler.last(measure{files, longLivedWorker}))
	}
}
