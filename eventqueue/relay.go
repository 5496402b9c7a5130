package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"
)

// RelayStore is what the relay needs of the database; pgstore.Store is one. One that
// is a UniqueStore as well has its keys looked after.
type RelayStore interface {
	OwedStore

	// TakeDue marks as published, and returns, at most limit events that are
	// owed a notification and due within the given time, the earliest first. It
	// skips rows that somebody is writing.
	TakeDue(ctx context.Context, within time.Duration, limit int) ([]Notification, error)

	// TakeLost looks at no more than limit rows with ids above after. Of these
	// it marks as published, and returns, those whose notification seems lost:
	// due, without a rule, not locked for less than lockTimeout, and silent for
	// longer than quiet and than the time from being due to the last
	// notification, so that the interval doubles each time. next is the last id
	// looked at, 0 when there are no more rows.
	TakeLost(ctx context.Context, after EventID, limit int, quiet, lockTimeout time.Duration) (lost []Notification, next EventID, err error)

	// Listen calls wake once it listens, and whenever a transaction commits that
	// owes notifications, until ctx ends or the connection breaks. It sends
	// nothing while it waits.
	Listen(ctx context.Context, wake func()) error
}

// RelayConfig configures a Relay. The zero value is ready to use.
type RelayConfig struct {
	// Interval is the relay's own timer; it is woken for what must not wait for
	// it. Default (0): 30 s; at most 4 minutes, so that what falls due between two
	// passes is within MaxRequeue at the first.
	Interval time.Duration

	// Quiet is how long a due event must have been silent for its notification
	// to be taken for lost the first time. Default (0): 1 minute.
	Quiet time.Duration

	// LockTimeout is the workers'. Default (0): 1 minute.
	LockTimeout time.Duration

	// PerSecond bounds how many notifications are published. Default (0):
	// 20,000.
	PerSecond int

	// PublishTimeout bounds one request to the notifier. Default (0): 10 s.
	PublishTimeout time.Duration

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an info line when something was published, and a warning when
	// that failed. Default (nil): none.
	Logger *zap.Logger
}

func (c RelayConfig) withDefaults() RelayConfig {
	setDefault(&c.Interval, 30*time.Second)
	setDefault(&c.Quiet, time.Minute)
	setDefault(&c.LockTimeout, time.Minute)
	setDefault(&c.PerSecond, 20_000)
	setDefault(&c.PublishTimeout, 10*time.Second)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first field that makes no sense.
func (c RelayConfig) Validate() error {
	c = c.withDefaults()
	for _, f := range []struct {
		name  string
		value time.Duration
	}{{"Interval", c.Interval}, {"Quiet", c.Quiet}, {"LockTimeout", c.LockTimeout}, {"PublishTimeout", c.PublishTimeout}} {
		if f.value < 0 {
			return fmt.Errorf("%s is %s: it must be positive", f.name, f.value)
		}
	}
	if c.Interval > maxInterval {
		return fmt.Errorf("Interval is %s: it must be at most %s", c.Interval, maxInterval)
	}
	if c.PerSecond < 0 {
		return fmt.Errorf("PerSecond is %d: it must be positive", c.PerSecond)
	}
	return nil
}

// Relay publishes the notifications that are owed, and again those that seem
// lost (I1, I2). Any number of relays may run at once.
type Relay struct {
	store     RelayStore
	publisher *publisher
	config    RelayConfig
	limiter   *rate.Limiter
	log       *zap.Logger
}

// Relayed counts what one pass has published.
type Relayed struct {
	// Owed were due and had no notification yet.
	Owed int
	// Lost had one that did not lead to a run.
	Lost int
	// More says that the pass ended before everything owed was published.
	More bool
}

const (
	// maxInterval keeps twice the interval below MaxRequeue.
	maxInterval = 4 * time.Minute
	// sweepPage is how many rows one statement of the sweep for lost
	// notifications looks at.
	sweepPage = 20_000
	// statementTakes bounds one statement, whatever became of the connection.
	statementTakes = 30 * time.Second
)

// NewRelay makes a Relay; Run starts it.
func NewRelay(store RelayStore, notifier Publisher, config RelayConfig) (*Relay, error) {
	if store == nil || notifier == nil {
		return nil, errors.New("eventqueue.NewRelay: store and notifier must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("eventqueue.NewRelay: %w", err)
	}
	config = config.withDefaults()
	return &Relay{
		store: store,
		publisher: &publisher{notifier: notifier, owe: store.Owe, timeout: config.PublishTimeout,
			log: config.Logger},
		config:  config,
		limiter: rate.NewLimiter(rate.Limit(config.PerSecond), max(config.PerSecond, MaxPublish)),
		log:     config.Logger,
	}, nil
}

// Run relays until ctx ends and returns nil then. Failures of the database and
// of the notifier are logged and tried again, each time after a longer wait.
func (r *Relay) Run(ctx context.Context) error {
	woken := make(chan struct{}, 1)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		r.listen(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	defer func() { <-listening }()

	wait := newFailureWait(r.config.Jitter)
	var sweepAt time.Time // the zero time: at once
	forgetAt := time.Now().Add(r.config.Jitter(forgetEvery))
	for ctx.Err() == nil {
		sweep := !time.Now().Before(sweepAt)
		done, err := r.pass(ctx, sweep)
		if done != (Relayed{}) {
			r.log.Info("published notifications", zap.Int("owed", done.Owed), zap.Int("lost", done.Lost))
		}
		if err != nil {
			if ctx.Err() == nil {
				r.log.Warn("could not relay notifications", zap.Duration(logWait, wait.next), zap.Error(err))
			}
			wait.pause(ctx)
			continue
		}
		wait.reset()
		if sweep {
			sweepAt = time.Now().Add(r.config.Interval*9/10 + r.config.Jitter(r.config.Interval/5+1))
		}
		if sweep && !time.Now().Before(forgetAt) {
			r.forget(ctx)
			forgetAt = time.Now().Add(forgetEvery)
		}
		if !done.More {
			idle(ctx, sweepAt, woken)
		}
	}
	return nil
}

// wakeGap is the least time between two passes, so that a stream of commits that
// owe notifications is relayed in batches.
const wakeGap = 10 * time.Millisecond

// idle waits until the given time or for a wake-up, and never less than wakeGap.
func idle(ctx context.Context, until time.Time, woken <-chan struct{}) {
	pause(ctx, wakeGap)
	t := time.NewTimer(time.Until(until))
	defer t.Stop()
	select {
	case <-t.C:
	case <-woken:
	case <-ctx.Done():
	}
}

// Pass publishes what is owed and due soon, then sweeps once over the waiting
// events for notifications that seem lost. Run calls it in its loop; call it
// where no relay runs. More says that there is more to do at once.
func (r *Relay) Pass(ctx context.Context) (Relayed, error) { return r.pass(ctx, true) }

// dueRounds bounds the pages of one pass, so that a stream of owed notifications
// does not keep the sweep from its turn.
const dueRounds = 50

func (r *Relay) pass(ctx context.Context, sweep bool) (Relayed, error) {
	var done Relayed
	for range dueRounds {
		due, err := r.takeDue(ctx)
		if err != nil {
			return done, fmt.Errorf("find owed notifications: %w", err)
		}
		if err := r.publish(ctx, due); err != nil {
			return done, err
		}
		done.Owed += len(due)
		if done.More = len(due) == MaxPublish; !done.More {
			break
		}
	}
	after := EventID(0)
	for sweep {
		lost, next, err := r.takeLost(ctx, after)
		if err != nil {
			return done, fmt.Errorf("find lost notifications: %w", err)
		}
		if err := r.publish(ctx, lost); err != nil {
			return done, err
		}
		done.Lost += len(lost)
		after, sweep = next, next != 0
	}
	return done, nil
}

func (r *Relay) takeDue(ctx context.Context) ([]Notification, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return r.store.TakeDue(ctx, 2*r.config.Interval, MaxPublish)
}

func (r *Relay) takeLost(ctx context.Context, after EventID) ([]Notification, EventID, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return r.store.TakeLost(ctx, after, sweepPage, r.config.Quiet, r.config.LockTimeout)
}

// publish sends notifications that are marked as published. What cannot be sent
// is marked as owed again.
func (r *Relay) publish(ctx context.Context, notifications []Notification) error {
	for len(notifications) > 0 {
		batch := notifications[:min(len(notifications), MaxPublish)]
		if err := r.limiter.WaitN(ctx, len(batch)); err != nil {
			r.publisher.oweAll(context.WithoutCancel(ctx), notifications)
			return err
		}
		if err := r.publisher.sendOne(context.WithoutCancel(ctx), batch); err != nil {
			r.publisher.oweAll(context.WithoutCancel(ctx), notifications[len(batch):])
			return fmt.Errorf("publish %d notifications: %w", len(batch), err)
		}
		notifications = notifications[len(batch):]
	}
	return nil
}

// listen keeps the wake-up line open. Without it the relay still works, on its
// timer.
func (r *Relay) listen(ctx context.Context, wake func()) {
	wait := newFailureWait(r.config.Jitter)
	for {
		began := time.Now()
		err := r.store.Listen(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxFailureWait {
			wait.reset()
		}
		r.log.Warn("lost the connection that wakes the relay", zap.Duration(logWait, wait.next), zap.Error(err))
		wait.pause(ctx)
	}
}
