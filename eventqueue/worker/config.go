package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/rounds"
)

// Config configures a Worker. The zero value is ready to use.
type Config struct {
	// Concurrency is how many events the worker may hold at once. Of 16 and more, a sixteenth is
	// reserved for canvases that would otherwise wait behind a busy one. Default (0): 500.
	Concurrency int

	// ClaimBatch is how many notifications one claim statement answers at most.
	// Default (0): 500; at most MaxPublish.
	ClaimBatch int

	// LockTimeout is how long a lock is valid without being renewed. It is stored in the database
	// and the same for all its programs: the first program that runs sets it, and Run refuses a
	// different one. Default (0): the database's, which is 1 minute unless set.
	LockTimeout time.Duration

	// Heartbeat is the interval in which running claims are renewed. Default
	// (0): a quarter of LockTimeout; at most half of it.
	Heartbeat time.Duration

	// Lease is the notifier's ack deadline; it is extended for as long as an
	// event runs. Default (0): 1 minute.
	Lease time.Duration

	// GracePeriod is how long running handlers may go on after Run's context
	// has ended. Default (0): 8 s. Negative: none.
	GracePeriod time.Duration

	// MaxHung bounds how many handlers that do not return though their contexts have ended may go on
	// beside Concurrency others. Seconds after the end of its context such a run is given up, and its
	// slot serves another event; beyond MaxHung a slot stays held. Default (0): as
	// many as Concurrency, and at least 100. Negative: none.
	MaxHung int

	// HungLimit is for how long such handlers may hold all slots until Stalled returns an error, and
	// with it the health check of a service. Default (0): 1 minute. Negative: for ever.
	HungLimit time.Duration

	// UnknownDelay is the longest wait between two tries to claim an event whose handler this
	// worker does not have. The first waits are shorter, so that another worker gets it soon. After
	// ten times UnknownDelay the relay publishes its notifications. Default (0): 5 s; at most 1
	// minute.
	UnknownDelay time.Duration

	// MaxEvents bounds how many events this worker claims: when so many runs are over, Run stops
	// and returns. Each claim counts, so an event that is run again counts again. A claim whose
	// answer was lost does not count, as nothing runs then, and neither does one that a rate limit
	// puts off. Default (0): no bound.
	MaxEvents int

	// TTL is how long the worker runs before it stops as when Run's context ends.
	// Default (0): no bound.
	TTL time.Duration

	// RetainHistory has completed events recorded in event_log. Failed ones always are.
	RetainHistory bool

	// Heartbeats is the store that renews claims. Give it a connection of its own, so that busy
	// handlers cannot delay it. Default (nil): a connection that the worker opens beside those of
	// its store, if the store is a Standby, as pgstore's is; otherwise the store.
	Heartbeats Store

	// NoFallback turns the fallback off. Default: a worker whose receiver is a RemoteReceiver and
	// whose store is a Standby finds due events in the database while the notifier is down, and
	// when another program reports notifications that it could not publish.
	NoFallback bool

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Observe is called with every outcome, from many goroutines; it must return fast. Default
	// (nil): none.
	Observe func(Outcome)

	// ObserveRenewal is called after each statement that renews claims; it must return fast. Default
	// (nil): none.
	ObserveRenewal func(Renewal)

	// Middleware stands around the handlers: each returns what is run in place of a handler, such as one that
	// records a span and calls it. The first one is outermost. New calls each once for each handler. A panic
	// within one is that of the handler. Default (nil): none.
	Middleware []func(eventqueue.Handler) eventqueue.Handler

	// OpenValue returns the value of an event whose value is encrypted, for its handler, as that of a codec of package
	// valuecodec does. It stands around the Middleware. Its error is a failed attempt. Default (nil): a run with an encrypted
	// value is a failed attempt.
	OpenValue func(e *eventqueue.Event) (json.RawMessage, error)

	// SealResult returns what is kept of the result of an event, as that of a codec of package valuecodec does. Its error is
	// that of Run.SetResult. Default (nil): the result itself.
	SealResult func(e *eventqueue.Event, result json.RawMessage) (json.RawMessage, error)

	// OnError is called once for each failed attempt: a handler returned an error, also of its timeout, or
	// panicked, or its run was lost with its worker. A snooze is none, and neither is a run that was given back or
	// whose end could not be written. Calls are made from many goroutines at once, and delay nothing: the run's
	// slot is free already. ctx ends after 10 s, has the trace of the event, and makes what is emitted in it
	// a child of the event. A panic is logged. While calls for twice Concurrency runs, and for at least 100,
	// have not returned, further ones are left out, with a warning for each. When the worker stops it waits for them as
	// long as for handlers, and a second more. Default (nil): none.
	OnError func(ctx context.Context, failed FailedRun)

	// LogEvents has every run logged at info when it has ended. Default (false): those that have
	// failed, at their levels, and the others at debug.
	LogEvents bool

	// Logger gets an error for each event that is FAILED, a warning for each run that is tried
	// again, an info line a minute that sums up the runs, and steps at debug. Default (nil): none.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	c.Concurrency = cmp.Or(c.Concurrency, 500)
	c.ClaimBatch = cmp.Or(c.ClaimBatch, 500)
	c.LockTimeout = cmp.Or(c.LockTimeout, time.Minute)
	c.Heartbeat = cmp.Or(c.Heartbeat, c.LockTimeout/4)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.GracePeriod = cmp.Or(c.GracePeriod, 8*time.Second)
	c.MaxHung = cmp.Or(c.MaxHung, max(c.Concurrency, 100))
	c.HungLimit = cmp.Or(c.HungLimit, time.Minute)
	c.UnknownDelay = cmp.Or(c.UnknownDelay, 5*time.Second)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Observe == nil {
		c.Observe = func(Outcome) {}
	}
	if c.ObserveRenewal == nil {
		c.ObserveRenewal = func(Renewal) {}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first invalid field.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("Concurrency is %d: it must be positive", c.Concurrency)
	case c.ClaimBatch < 0 || c.ClaimBatch > eventqueue.MaxPublish:
		return fmt.Errorf("ClaimBatch is %d: it must be from 1 to %d", c.ClaimBatch, eventqueue.MaxPublish)
	case c.LockTimeout < time.Second:
		return fmt.Errorf("LockTimeout is %s: it must be at least 1s", c.LockTimeout)
	case c.Heartbeat < 0 || c.Heartbeat > c.LockTimeout/2:
		return fmt.Errorf("Heartbeat is %s: it must be positive and at most half of LockTimeout (%s)", c.Heartbeat, c.LockTimeout)
	case c.Lease < time.Second || c.Lease > eventqueue.MaxRequeue:
		return fmt.Errorf("Lease is %s: it must be from 1s to %s", c.Lease, eventqueue.MaxRequeue)
	case c.MaxEvents < 0:
		return fmt.Errorf("MaxEvents is %d: it must not be negative; 0 means no bound", c.MaxEvents)
	case c.TTL < 0:
		return fmt.Errorf("TTL is %s: it must not be negative; 0 means no bound", c.TTL)
	case c.UnknownDelay < 0 || c.UnknownDelay > time.Minute:
		return fmt.Errorf("UnknownDelay is %s: it must be from 0 to 1m", c.UnknownDelay)
	}
	if i := slices.IndexFunc(c.Middleware, func(m func(eventqueue.Handler) eventqueue.Handler) bool { return m == nil }); i >= 0 {
		return fmt.Errorf("Middleware[%d] is nil: leave it out", i)
	}
	return nil
}

// part is common to all parts of a worker.
type part struct {
	config *Config // which does not change once the parts work
	store  Store
	log    *zap.Logger
	rounds *rounds.Watch // of the loops
}
