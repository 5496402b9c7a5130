package fallback

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
)

// Store finds events that should be notified; pgstore.Store is one.
type Store interface {
	TakeDue(ctx context.Context, within time.Duration, limit int) ([]eventqueue.Notification, error)
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lockTimeout time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error)
}

// Primary is a receiver that can also say, at once, whether it is reachable;
// pubsubnotify.Notifier is one.
type Primary interface {
	eventqueue.Receiver
	Check(ctx context.Context) error
}

// Config configures a Receiver. The zero value is ready to use.
type Config struct {
	// After is how long pulls must have failed before the database is polled.
	// Default (0): 3 s.
	After time.Duration

	// Poll is the time between two looks for due events. Default (0): 1 s.
	Poll time.Duration

	// Sweep is the time between two looks for lost notifications, and Quiet how
	// long an event must have been silent for that. Defaults (0): 15 s, 1 minute.
	Sweep, Quiet time.Duration

	// LockTimeout is the workers'. Default (0): 1 minute.
	LockTimeout time.Duration

	// Probe is the time between two checks of a notifier that is down, and how
	// long one may take. Default (0): 2 s.
	Probe time.Duration

	// Logger is told when the database takes over and when it steps back.
	// Default (nil): nobody is told.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.After, 3 * time.Second}, {&c.Poll, time.Second}, {&c.Sweep, 15 * time.Second}, {&c.Quiet, time.Minute},
		{&c.LockTimeout, time.Minute}, {&c.Probe, 2 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Receiver is an eventqueue.Receiver on a notifier and a database. It is safe
// for concurrent use and runs no goroutine.
type Receiver struct {
	primary Primary
	local   *memnotify.Notifier
	store   Store
	config  Config

	mu      sync.Mutex
	failing time.Time // since when pulls fail; zero while they do not
	polling bool
	probeAt time.Time
	pollAt  time.Time
	sweepAt time.Time
	swept   eventqueue.EventID // how far the sweep under way has come
}

// New makes a Receiver.
func New(primary Primary, store Store, config Config) (*Receiver, error) {
	if primary == nil || store == nil {
		return nil, errors.New("fallback.New: primary and store must not be nil")
	}
	return &Receiver{primary: primary, local: memnotify.New(memnotify.Config{}), store: store, config: config.withDefaults()}, nil
}

// mark begins the ack ID of what was found in the database.
const mark = "db/"

// Pull implements eventqueue.Receiver.
func (r *Receiver) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	if r.local.Ready() > 0 {
		return r.pullLocal(ctx, max)
	}
	if !r.isPolling() {
		return r.pullPrimary(ctx, max)
	}
	if r.takeTurn(&r.probeAt, r.config.Probe) {
		if r.probe(ctx) {
			return r.pullPrimary(ctx, max)
		}
	}
	if err := r.poll(ctx, max); err != nil {
		return nil, fmt.Errorf("poll the database while the notifier is down: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, r.config.Poll/2+rand.N(r.config.Poll))
	defer cancel()
	deliveries, err := r.pullLocal(wait, max)
	if err != nil && ctx.Err() == nil {
		return nil, nil // nothing was due; the caller pulls again
	}
	return deliveries, err
}

// probe asks the notifier whether it is back.
func (r *Receiver) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.config.Probe)
	defer cancel()
	if r.primary.Check(ctx) != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing, r.polling = time.Time{}, false
	r.config.Logger.Info("the notifier answers again: the database is no longer polled")
	return true
}

// pullPrimary pulls and keeps account of failures.
func (r *Receiver) pullPrimary(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	deliveries, err := r.primary.Pull(ctx, max)
	if ctx.Err() != nil {
		return deliveries, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		r.failing = time.Time{}
	case r.failing.IsZero():
		r.failing = now
	case !r.polling && now.Sub(r.failing) >= r.config.After:
		r.polling, r.probeAt = true, now.Add(r.config.Probe)
		r.config.Logger.Warn("the notifier is down: polling the database for due events", zap.Error(err))
	}
	return deliveries, err
}

func (r *Receiver) isPolling() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.polling
}

// takeTurn tells whether it is time again, for one of the callers only.
func (r *Receiver) takeTurn(at *time.Time, every time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(*at) {
		return false
	}
	*at = now.Add(every)
	return true
}

// poll puts what is due, and what seems lost, into the local queue.
func (r *Receiver) poll(ctx context.Context, max int) error {
	if r.takeTurn(&r.pollAt, r.config.Poll/2) {
		due, err := r.store.TakeDue(ctx, 0, min(max, eventqueue.MaxPublish))
		if err != nil {
			return err
		}
		if err := r.enqueue(ctx, due); err != nil {
			return err
		}
		if len(due) == max { // more may be due
			r.mu.Lock()
			r.pollAt = time.Time{}
			r.mu.Unlock()
		}
	}
	if !r.takeTurn(&r.sweepAt, r.config.Sweep) {
		return nil
	}
	r.mu.Lock()
	after := r.swept
	r.mu.Unlock()
	lost, next, err := r.store.TakeLost(ctx, after, sweepPage, r.config.Quiet, r.config.LockTimeout)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.swept = next
	if next != 0 { // the next page soon
		r.sweepAt = time.Now().Add(r.config.Poll)
	}
	r.mu.Unlock()
	return r.enqueue(ctx, lost)
}

// sweepPage is how many rows one look for lost notifications reads.
const sweepPage = 20_000

func (r *Receiver) enqueue(ctx context.Context, found []eventqueue.Notification) error {
	for len(found) > 0 {
		n := min(len(found), eventqueue.MaxPublish)
		if err := r.local.Publish(ctx, found[:n]); err != nil {
			return err
		}
		found = found[n:]
	}
	return nil
}

func (r *Receiver) pullLocal(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	deliveries, err := r.local.Pull(ctx, max)
	for i := range deliveries {
		deliveries[i].AckID = mark + deliveries[i].AckID
	}
	return deliveries, err
}

// errDown is the answer to acknowledgements while the notifier is down.
var errDown = errors.New("the notifier is down")

// Ack implements eventqueue.Receiver.
func (r *Receiver) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return r.answer(deliveries, func(to eventqueue.Receiver, ds []eventqueue.Delivery) error { return to.Ack(ctx, ds) })
}

// Requeue implements eventqueue.Receiver.
func (r *Receiver) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	return r.answer(deliveries, func(to eventqueue.Receiver, ds []eventqueue.Delivery) error { return to.Requeue(ctx, ds, after) })
}

// answer sends each delivery's answer to where it came from.
func (r *Receiver) answer(deliveries []eventqueue.Delivery, send func(eventqueue.Receiver, []eventqueue.Delivery) error) error {
	var local, primary []eventqueue.Delivery
	for _, d := range deliveries {
		if id, ok := strings.CutPrefix(d.AckID, mark); ok {
			d.AckID = id
			local = append(local, d)
		} else {
			primary = append(primary, d)
		}
	}
	var errs []error
	if len(local) > 0 {
		errs = append(errs, send(r.local, local))
	}
	switch {
	case len(primary) == 0:
	case r.isPolling():
		errs = append(errs, errDown)
	default:
		errs = append(errs, send(r.primary, primary))
	}
	return errors.Join(errs...)
}
