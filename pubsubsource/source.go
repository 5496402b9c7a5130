package pubsubsource

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"github.com/googleapis/gax-go/v2"
	"go.uber.org/zap"
	"google.golang.org/api/option"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/cause"
	"eventsv2/internal/intake"
	"eventsv2/internal/pubsubdial"
)

// callTakes bounds each call but a pull.
const callTakes = 10 * time.Second

// Source takes in the messages of one subscription.
type Source struct {
	queue  *eventqueue.Queue
	config Config
	log    *zap.Logger
	lease  time.Duration
	// refusals bounds the lines about messages of which no event can be made.
	refusals intake.LogLimiter

	mu      sync.Mutex
	failure error // nil: messages are taken in
	logged  cause.Log
}

// New makes a Source that emits to a queue. It sends nothing. The error says which field of config makes no sense.
func New(queue *eventqueue.Queue, config Config) (*Source, error) {
	if queue == nil {
		return nil, errors.New("pubsubsource.New: queue must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("pubsubsource.New: %w", err)
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	return &Source{queue: queue, config: config, lease: lease, log: config.Logger.With(zap.String("subscription", config.Subscription))}, nil
}

// Run takes in messages until ctx ends, and then returns nil. It returns an error if the subscription turns out at first to be
// unfit or absent, or a right is missing; later it logs that, and tries again. Call it once.
func (s *Source) Run(ctx context.Context) error {
	wait := backoff.New(rand.N[time.Duration])
	for begun := false; ; {
		began := time.Now()
		fit, err := s.attend(ctx)
		begun = begun || fit
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it stops
		}
		if !begun && lasts(err) {
			return err
		}
		s.failed(err)
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		wait.Pause(ctx)
	}
}

// attend takes in messages over one connection, until a call fails or ctx ends. fit reports whether the subscription
// was found to be fit.
func (s *Source) attend(ctx context.Context) (fit bool, err error) {
	conn, err := pubsubdial.Dial(ctx, s.config.EmulatorHost, s.config.ClientOptions)
	if err != nil {
		return false, fmt.Errorf("connect to Pub/Sub for %s: %w", s.config.Subscription, err)
	}
	defer func() { _ = conn.Close() }() // calls have ended
	client, err := pubsub.NewSubscriptionAdminClient(ctx, option.WithGRPCConn(conn))
	if err != nil {
		return false, fmt.Errorf("make the client of %s: %w", s.config.Subscription, err)
	}
	once := []gax.CallOption{gax.WithTimeout(callTakes)}
	client.CallOptions.GetSubscription, client.CallOptions.Acknowledge, client.CallOptions.ModifyAckDeadline = once, once, once
	client.CallOptions.Pull = nil // the caller sets its deadline
	for {
		are, err := s.check(ctx, client)
		if err != nil {
			return fit, err
		}
		fit = true
		s.failed(nil)
		t := &taker{Source: s, client: client, settings: are}
		if err := t.takeIn(ctx); err != nil {
			return fit, err
		}
	}
}

// failed notes why messages are not taken in; nil: they are.
func (s *Source) failed(err error) {
	s.mu.Lock()
	before := s.failure
	s.failure = err
	worth := err != nil && s.logged.Worth(err, before == nil)
	s.mu.Unlock()
	switch {
	case worth:
		s.log.Warn("messages of a subscription of another service are not taken in; they stay there, and it is tried again", zap.Error(err))
	case err == nil && before != nil:
		s.log.Info("messages of a subscription of another service are taken in again")
	}
}

// Err returns an *Error while no messages can be taken in, and nil otherwise. It costs nothing, and is safe for concurrent use.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		return nil
	}
	return &Error{s.config.Subscription, s.failure}
}

// Error is why no messages of a subscription can be taken in.
type Error struct {
	Subscription string
	err          error
}

func (e *Error) Error() string {
	return fmt.Sprintf("messages of %s are not taken in: %v", e.Subscription, e.err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// Effect says what follows from it, as readiness does.
func (*Error) Effect() string {
	return "messages of a subscription of another service stay there, and are no events yet"
}

// Advice says what to do, without the names of resources.
func (*Error) Advice() string {
	return "a subscription of another service, or the database, cannot be used: the reason is in the log"
}
