package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/httptarget"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/typed"
	"eventsv2/eventqueue/worker"
	"eventsv2/pubsubsource"
	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// Service is a program's use of the queue. It emits with the methods of its Queue, of
// which those with an event, or several, take it with or without canvas, module and
// modifier (see [Config.Queue]). Register handlers before Run; everything else is safe
// for concurrent use.
type Service struct {
	*eventqueue.Queue

	config    Config
	log       *zap.Logger
	pool      *pgxpool.Pool
	store     *pgstore.Store
	receiver  eventqueue.Receiver // nil in a program that runs no events
	publisher publisher
	notifier  publisher // the same, without what observes it
	bus       *typed.Bus
	handlers  *eventqueue.Handlers
	client    *http.Client // of HTTP targets; nil without any
	sources   []webhook.Source
	messages  []pubsubsource.Config // of subscriptions of other services
	received  *received.Counter     // of what the sources receive
	added     []part                // by AddPart

	typed    sync.Once // the handlers of typed events were registered
	typedErr error
	wrapped  func() (*eventqueue.Handlers, error) // the handlers within Config.Worker.Middleware, made once

	started    atomic.Bool   // Run was called
	complete   atomic.Bool   // a worker was made, which knows no later handlers
	running    running       // for Close
	fit        atomic.Bool   // Check has returned nil
	waiting    atomic.Bool   // the log says that the database is waited for
	relayCheck time.Duration // from the start of a worker to its check for a relay

	worker atomic.Pointer[worker.Worker] // nil before Run, and in a program that runs no events

	mu    sync.Mutex
	parts []func() error // why publishing or pulling fails, of each that does it
	loops []func() error // which loops have stalled, of each that has some

	peersAsked answers // of database and notifier, for /readyz
}

// openTakes bounds what Open waits for a database that accepts and does not answer.
const openTakes = 5 * time.Second

// relayCheckAfter is how long after its start a worker checks that a relay runs: a relay
// that is started with it has begun by then.
const relayCheckAfter = time.Minute

// Open makes the connections of a program and checks what they connect to. It returns an
// error when config makes no sense, and then nothing has been written or sent; when the
// handlers file is wrong; and when waiting cannot help: the database
// refuses, its schema is not that of this version, a right is missing, the lock timeout
// differs, the subscription would lose events. A database or a Pub/Sub that cannot be
// reached yet is no error: it is logged, and Run waits. Open blocks for ten seconds at
// most, or until ctx ends. The Service is the caller's to close.
func Open(ctx context.Context, config Config) (*Service, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("service.Open: %w", err)
	}
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("service.Open: %w", err)
	}
	s := &Service{config: config, log: config.Logger, handlers: eventqueue.NewHandlers(), relayCheck: relayCheckAfter}
	s.peersAsked.ready, s.peersAsked.reached = s.peers, s.reaches
	s.wrapped = sync.OnceValues(func() (*eventqueue.Handlers, error) { return s.config.Worker.Wrap(s.handlers) })
	if err := s.readHandlersFile(); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	looking, cancel := ctx, func() {}
	if !config.NoWait {
		looking, cancel = context.WithTimeout(ctx, openTakes)
	}
	defer cancel()
	if err := s.Check(looking); err != nil && (ctx.Err() != nil || config.NoWait || !s.mayPass(err)) {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect makes the pool and what stands on it. It sends the database nothing.
func (s *Service) connect(ctx context.Context) (err error) {
	s.pool = s.config.Pool
	if s.pool == nil {
		if s.pool, err = pgstore.NewPoolWith(s.config.Access, s.config.DatabaseURL, s.config.Name, s.config.MaxConns); err != nil {
			return err
		}
	}
	s.store = pgstore.NewIn(s.config.Schema, s.pool)
	s.store.LogTo(s.log)
	kind := kinds[s.config.Notifier]
	if s.config.NoWorker {
		s.publisher, err = kind.publish(ctx, s.config, s.pool)
	} else {
		var n notifier
		if n, err = kind.open(ctx, s.config, s.pool); err == nil {
			s.publisher, s.receiver = n, n
		}
	}
	if err != nil {
		return err
	}
	s.notifier = s.publisher
	if pulls, ok := s.notifier.(shared); ok {
		s.readyNeeds(pulls.ForeignError)
	}
	if s.config.Observer != nil {
		s.publisher = observedPublisher{s.publisher, s.config.Observer}
	}
	if s.Queue, err = eventqueue.New(s.store, s.publisher, s.config.Queue); err != nil {
		return err
	}
	if s.config.Observer != nil {
		minutes.Of(s.Queue).Observe(s.config.Observer)
	}
	s.received = received.NewCounter(pgsession.On(s.pool, s.config.Schema), rand.N[time.Duration], s.log)
	s.readyNeeds(s.PublishError)
	s.bus, err = typed.New(s.Queue, s.config.Typed)
	return err
}

// readHandlersFile registers the targets of the handlers file and keeps its sources.
func (s *Service) readHandlersFile() error {
	if s.config.HandlersFile == "" {
		return nil
	}
	file, err := httptarget.Load(s.config.HandlersFile)
	if err != nil {
		return err
	}
	options := []httptarget.ClientOption{httptarget.IdleTimeout(s.config.TargetIdleTimeout)}
	if s.config.TargetLinkLocal {
		options = append(options, httptarget.AllowLinkLocal())
	}
	s.client = httptarget.NewClient(options...)
	if err := file.Register(s.handlers, httptarget.Shared{Client: s.client, Secret: s.config.Secret}); err != nil {
		return err
	}
	if s.sources, err = webhookSources(file, s.config.Secret); err != nil {
		return err
	}
	s.messages, err = subscriptionsOf(file)
	return err
}

// closeTimeout is how long the last publishes may take at the end of a program: a
// worker's stop has used up most of its time before. The relay publishes what was cut off.
const closeTimeout = 250 * time.Millisecond

// countsTimeout is how long the last counts may take, which would be lost.
const countsTimeout = 3 * time.Second

// Close waits until what is being published is out, for a quarter of a second at most, and closes
// the connections. What sources of webhooks have received since the last minute is handed in, for three seconds at most. Call it after
// the last emit; with the notifier
// Postgres it takes up to two seconds more. What it could not publish is not lost, only
// later. If Run still runs, Close stops it first, as the end of its context would, and waits for it: for
// Config.Worker.GracePeriod and some seconds at most, after which it closes nothing and returns an error.
func (s *Service) Close() error {
	if err := s.running.end(max(0, s.config.Worker.GracePeriod) + closeWaits); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	if s.Queue != nil {
		errs = append(errs, s.Queue.Close(ctx))
	}
	if s.received != nil {
		counts, cancel := context.WithTimeout(context.Background(), countsTimeout)
		_ = s.received.HandIn(counts) // logged; a program whose requests are all answered has not failed
		cancel()
	}
	if s.publisher != nil {
		errs = append(errs, s.publisher.Close())
	}
	if s.pool != nil && s.config.Pool == nil {
		pgsession.Close(s.pool)
	}
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return errors.Join(errs...)
}

// Logger returns the logger of Config, or the one that Open made.
func (s *Service) Logger() *zap.Logger { return s.log }

// Pool is the pool of connections to the queue's database, for the program's own
// statements: the one of Config, or the one that Open made.
func (s *Service) Pool() *pgxpool.Pool { return s.pool }

// Store is used by the packages operate and inspect to read events and to change
// rules and limits.
func (s *Service) Store() *pgstore.Store { return s.store }
