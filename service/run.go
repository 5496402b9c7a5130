package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
	"eventsv2/internal/setup"
	"eventsv2/pubsubsource"
)

// Run opens a Service, has register add its handlers, runs it until ctx ends and closes
// it: all of a program that emits from its handlers only. A nil register adds none. What
// libraries write with Go's own log package are warnings of config.Logger from then on, in
// the whole process; why Run failed is a line of that log, too. The errors are the same as of
// Open, register, [Service.Run] and Close; a ctx that ends early is none.
func Run(ctx context.Context, config Config, register func(*Service) error) (err error) {
	if config, err = config.withLogger(); err != nil {
		return fmt.Errorf("service.Run: %w", err)
	}
	defer func() {
		if err = setup.UnlessStopped(ctx, err); err != nil {
			config.Logger.Error("the program failed", zap.Error(err))
		}
	}()
	if _, err := zap.RedirectStdLogAt(config.Logger, zap.WarnLevel); err != nil {
		return fmt.Errorf("service.Run: %w", err)
	}
	s, err := Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if register != nil {
		if err := register(s); err != nil {
			return err
		}
	}
	return s.Run(ctx)
}

// Run runs the worker, the relay, cron and the pruning of the history, each unless Config
// says otherwise, and what AddPart has added, and serves Config.Address meanwhile. It waits for a database that
// cannot be reached. When ctx ends it stops: running handlers have Config.Worker.GracePeriod, and
// what they leave goes back unharmed. It also stops when the worker has reached its
// MaxEvents or TTL, and when Close is called. After each it returns nil.
//
// Run returns an error at once when no handler is registered for the worker, when a typed
// handler makes no sense, when the address is taken, and when it or Close was called before; and
// later what Open would have returned if it could have seen it.
func (s *Service) Run(ctx context.Context) error {
	if s.started.Swap(true) {
		return errors.New("service.Service: Run was called twice")
	}
	s.complete.Store(true)
	ctx, ended, err := s.running.begin(ctx)
	if err != nil {
		return err
	}
	defer ended()
	parts, err := s.newParts()
	if err != nil {
		return fmt.Errorf("service.Service: %w", err)
	}
	work := func(ctx context.Context) error {
		if err := s.await(ctx); err != nil {
			return err
		}
		return runTogether(ctx, s.log, parts)
	}
	if s.config.Address != "" {
		err = s.serveWhile(ctx, work)
	} else {
		err = work(ctx)
	}
	return setup.UnlessStopped(ctx, err)
}

// AddPart has Run run one more part: something of the program's own that needs the database, such as the Run of
// an operate.Operations or a server. It is run once the database can be used. It returns when ctx ends; if it returns an
// error, the other parts are stopped, and Run returns that error. The name is for the log. Call AddPart before Run.
func (s *Service) AddPart(name string, run func(ctx context.Context) error) {
	s.added = append(s.added, part{name: name, run: run})
}

// newParts makes the parts that are not switched off.
func (s *Service) newParts() (parts []part, err error) {
	for _, p := range []struct {
		off  bool
		make func() (part, error)
	}{{s.config.NoWorker, s.newWorker}, {s.config.NoRelay, s.newRelay}, {s.config.NoCron, s.newCron}, {s.config.NoPruner, s.newPruner}} {
		if p.off {
			continue
		}
		made, err := p.make()
		if err != nil {
			return nil, err
		}
		parts = append(parts, made)
	}
	sources, err := s.newSources()
	if err != nil {
		return nil, err
	}
	parts = append(append(parts, sources...), s.added...)
	if len(parts) == 0 && s.config.Address == "" {
		return nil, errors.New("every part is switched off: there is nothing to run")
	}
	return parts, nil
}

// NewWorker makes a worker of the handlers that are registered, as Run does, on another store or another receiver; change, which may be
// nil, changes the configuration of Config. It is for a program that decides by itself when which event runs,
// such as a test with package eventstest; others call Run. From then on no handlers can be registered. The handlers of all its
// workers are the same, within the Middleware of Config; change finds none, and what it sets stands around that.
func (s *Service) NewWorker(store worker.Store, receiver eventqueue.Receiver, change func(*worker.Config)) (*worker.Worker, error) {
	s.complete.Store(true)
	if err := s.registerTyped(); err != nil {
		return nil, err
	}
	handlers, err := s.wrapped()
	if err != nil {
		return nil, err
	}
	config := s.config.Worker
	config.Middleware = nil
	if change != nil {
		change(&config)
	}
	return worker.New(s.Queue, store, receiver, handlers, config)
}

func (s *Service) newWorker() (part, error) {
	if err := s.registerTyped(); err != nil {
		return part{}, err
	}
	set := s.handlers.Set()
	if len(set.Everywhere)+len(set.OnCanvas) == 0 && s.config.HandlersFile == "" {
		return part{}, errors.New("no handler is registered: use Register or On before Run, or set NoWorker in a program that runs no events")
	}
	w, err := s.NewWorker(s.store, s.receiver, nil)
	if err != nil {
		return part{}, err
	}
	s.worker.Store(w)
	s.readyNeeds(w.NotifierError)
	s.aliveNeeds(w.Stalled)
	fields := []zap.Field{zap.Int("handlers", len(set.Everywhere)+len(set.OnCanvas)), zap.String("notifier", s.config.notifierName())}
	return part{name: "worker", fields: fields, ends: true, run: func(ctx context.Context) error {
		looking, stop := context.WithCancel(ctx)
		var look sync.WaitGroup
		if s.config.NoRelay {
			look.Go(func() { s.checkForRelay(looking) })
		}
		look.Go(func() { s.noteForeign(looking) })
		defer look.Wait()
		defer stop()
		return w.Run(ctx)
	}}, nil
}

// Slots returns how the worker is occupied, and false while there is none: before Run, and in a program that runs
// no events. It costs nothing, and is safe for concurrent use.
func (s *Service) Slots() (slots worker.Slots, works bool) {
	if w := s.worker.Load(); w != nil {
		return w.Slots(), true
	}
	return worker.Slots{}, false
}

// newRelay makes the relay when it is run. Rules whose end
// has come are lifted beside it.
func (s *Service) newRelay() (part, error) {
	return part{name: "relay", run: func(ctx context.Context) error {
		config := s.config.Relay
		if config.Explain == nil {
			config.Explain = s.explain
		}
		relay, err := maintenance.NewRelay(s.store, s.publisher, config)
		if err != nil {
			return err
		}
		s.readyNeeds(relay.PublishError)
		s.readyNeeds(s.store.ListenError)
		s.aliveNeeds(relay.Stalled)
		rules, err := operate.NewRules(s.store.As(ownActor()), s.Queue)
		if err != nil {
			return err
		}
		s.aliveNeeds(rules.Stalled)
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return rules.RunExpiry(ctx) })
		group.Go(func() error { return relay.Run(ctx) })
		return group.Wait()
	}}, nil
}

func (s *Service) newCron() (part, error) {
	checker, err := cronchecker.New(cronchecker.NewPostgresIn(s.config.Schema, s.pool, s.Queue), s.config.Cron)
	if err != nil {
		return part{}, err
	}
	s.aliveNeeds(checker.Stalled)
	return part{name: "cron", run: checker.Run}, nil
}

func (s *Service) newPruner() (part, error) {
	pruner, err := maintenance.NewPruner(s.store, s.config.Pruner)
	if err != nil {
		return part{}, err
	}
	s.aliveNeeds(pruner.Stalled)
	return part{name: "pruner", run: func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return pruner.Run(ctx) })
		group.Go(func() error { return s.pruneOperations(ctx) })
		return group.Wait()
	}}, nil
}

// checkForRelay warns when no relay is connected to the database. It sends one statement,
// once.
func (s *Service) checkForRelay(ctx context.Context) {
	timer := time.NewTimer(s.relayCheck)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkTakes)
	defer cancel()
	switch running, err := s.store.RelayRuns(ctx); {
	case err != nil:
		s.log.Debug("could not check whether a relay runs", zap.Error(err))
	case running:
		s.log.Debug("a relay runs on this database")
	default:
		s.log.Warn("no relay runs on this database: start cmd/cron, or a program that has not set NoRelay; until then events that are emitted by SQL " +
			"or in transactions of the caller's, that are delayed for more than 10 minutes, or whose notifications are lost, start late or never")
	}
}

// newSources makes a part of each subscription of the handlers file.
func (s *Service) newSources() (parts []part, err error) {
	for _, config := range s.messages {
		config.EmulatorHost, config.ClientOptions, config.Logger = s.config.PubSub.EmulatorHost, s.config.PubSub.ClientOptions, s.log
		source, err := pubsubsource.New(s.Queue, config)
		if err != nil {
			return nil, err
		}
		s.readyNeeds(source.Err)
		parts = append(parts, part{name: "source of messages", fields: []zap.Field{zap.String("subscription", config.Subscription)}, run: source.Run})
	}
	return parts, nil
}
