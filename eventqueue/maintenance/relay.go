package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// RelayConfig configures a Relay. The zero value is ready to use.
type RelayConfig struct {
	// Interval is the time between two passes; a commit with urgent pending notifications wakes the
	// relay earlier. Default (0): 30 s; at most 4 minutes, so that an event that becomes due
	// between two passes is within MaxRequeue at the first.
	Interval time.Duration

	// Quiet is how long ago the last notification of a due event must be to count as lost the first
	// time. Default (0): 1 minute.
	Quiet time.Duration

	// LockTimeout is for a store whose database does not know it. Otherwise the database's value
	// counts, and a different one here is logged as a warning. Default (0): 1 minute.
	LockTimeout time.Duration

	// PerSecond bounds how many notifications are published. Default (0):
	// 20,000.
	PerSecond int

	// PublishTimeout bounds one request to the notifier; when Run is stopped, it has 2 s at most.
	// Default (0): 5 s.
	PublishTimeout time.Duration

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an info line when something was published, and a warning when
	// that failed. Default (nil): none.
	Logger *zap.Logger
}

func (c RelayConfig) withDefaults() RelayConfig {
	c.Interval = cmp.Or(c.Interval, 30*time.Second)
	c.Quiet = cmp.Or(c.Quiet, time.Minute)
	c.LockTimeout = cmp.Or(c.LockTimeout, time.Minute)
	c.PerSecond = cmp.Or(c.PerSecond, 20_000)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 5*time.Second)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Validate names the first invalid field.
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

// Relay publishes pending notifications, and publishes lost ones again (I1, I2). Any number of
// relays may run at once.
type Relay struct {
	store     RelayStore
	publisher *eventqueue.Sender
	config    RelayConfig
	limiter   *rate.Limiter
	log       *zap.Logger

	// ownLockTimeout is the configured value, 0 for none, and lockTimeout the one in use.
	ownLockTimeout time.Duration
	lockTimeout    atomic.Int64

	// emptyUntil is until when the rounds rest because the walk found no event, in nanoseconds of
	// Unix time.
	emptyUntil atomic.Int64

	// woken wakes the loop that publishes pending notifications.
	woken chan struct{}

	// readFrom holds the time before which no round reads its next part, for the round that
	// does so.
	readFrom chan time.Time
}

// PublishError is that of Queue, for the notifications that the relay publishes.
func (r *Relay) PublishError() error { return r.publisher.LastError() }

// Relayed counts what one pass has published.
type Relayed struct {
	// Pending were due and had no notification yet.
	Pending int
	// Lost had a notification that did not lead to a run. Those that the rate did not allow yet
	// are left pending, and are counted there.
	Lost int
	// More says that the pass ended before all pending notifications were published.
	More bool
}

const (
	// maxInterval keeps twice the interval below MaxRequeue.
	maxInterval = 4 * time.Minute
	// statementTakes bounds one statement, whatever happens to the connection.
	statementTakes = 30 * time.Second
)

// NewRelay makes a Relay; Run starts it.
func NewRelay(store RelayStore, notifier eventqueue.Publisher, config RelayConfig) (*Relay, error) {
	if store == nil || notifier == nil {
		return nil, errors.New("maintenance.NewRelay: store and notifier must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("maintenance.NewRelay: %w", err)
	}
	ownLockTimeout := config.LockTimeout
	config = config.withDefaults()
	relay := &Relay{
		ownLockTimeout: ownLockTimeout,

		store:     store,
		publisher: eventqueue.NewSender(notifier, store, config.PublishTimeout, 0, config.Logger),
		config:    config,
		limiter:   rate.NewLimiter(rate.Limit(config.PerSecond), max(config.PerSecond, eventqueue.MaxPublish)),
		log:       config.Logger,
		woken:     make(chan struct{}, 1),
		readFrom:  make(chan time.Time, 1),
	}
	relay.readFrom <- time.Time{}
	relay.lockTimeout.Store(int64(config.LockTimeout))
	return relay, nil
}

// Run relays until ctx ends and returns nil then, within three seconds. Failures of the database and
// of the notifier are logged and tried again, each time after a longer wait.
func (r *Relay) Run(ctx context.Context) error {
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		r.listen(ctx, func() {
			r.noLongerEmpty()
			r.wake()
		})
	}()
	defer func() { <-listening }()

	deleteKeysAt := time.Now().Add(r.config.Jitter(deleteKeysEvery))
	var parts sync.WaitGroup
	parts.Go(func() { r.heedLockTimeout(ctx) })
	parts.Go(func() {
		passes := &passes{relay: r, free: rate.NewLimiter(rate.Every(emptyPassWait), freeEmptyPasses)}
		r.loop(ctx, passes.on, func() { passes.rest(ctx) })
	})
	for _, stage := range []RoundStage{RoundOfHandlers, RoundOfGroups, RoundOfRuns} {
		parts.Go(func() {
			round := &round{relay: r, after: RoundPlace{Stage: stage}}
			backoff.Sleep(ctx, time.Duration(stage)*roundsApart)
			r.loop(ctx, round.on, func() { round.rest(ctx) })
		})
	}
	parts.Go(func() {
		walk := &walk{relay: r, publish: r.publishOrLeave, reported: map[eventqueue.EventID]bool{}}
		r.loop(ctx, walk.on, func() {
			if !time.Now().Before(deleteKeysAt) {
				r.deleteKeys(ctx)
				deleteKeysAt = time.Now().Add(deleteKeysEvery)
			}
			walk.rest(ctx)
		})
	})
	parts.Wait()
	return nil
}

// loop does a part of the relay's work until ctx ends, and rests when none is left. The parts run
// concurrently, so that none delays another (I20).
func (r *Relay) loop(ctx context.Context, work func(context.Context) (Relayed, error), rest func()) {
	wait := backoff.New(r.config.Jitter)
	for ctx.Err() == nil {
		done, err := work(ctx)
		if done.Pending+done.Lost > 0 {
			r.log.Info("published notifications", zap.Int("pending", done.Pending), zap.Int("lost", done.Lost))
		}
		if err != nil {
			if errors.Is(err, errNotPublished) { // the publisher has logged it, once
				backoff.Sleep(ctx, restAfterRefusal/2+r.config.Jitter(restAfterRefusal))
				continue
			}
			if ctx.Err() == nil {
				r.log.Warn("could not relay notifications", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			}
			wait.Pause(ctx)
			continue
		}
		wait.Reset()
		if !done.More {
			rest()
		}
	}
}

// about keeps several relays from reading at the same instant.
func (r *Relay) about(interval time.Duration) time.Duration {
	return interval*9/10 + r.config.Jitter(interval/5+1)
}

const (
	// wakeGap is the least time between two passes, so that a stream of commits with pending
	// notifications is relayed in batches.
	wakeGap = 10 * time.Millisecond
	// Passes that find nothing are followed by emptyPassWait once there are more than
	// freeEmptyPasses of them at once and one in each such time. Everybody who may connect can send
	// a NOTIFY, and each would otherwise cost a statement.
	freeEmptyPasses = 50
	emptyPassWait   = 100 * time.Millisecond
)

// passes publishes pending notifications in one pass after the other. It is for one goroutine.
type passes struct {
	relay *Relay
	free  *rate.Limiter // passes that find nothing
	found bool          // whether the last one found something
}

func (p *passes) on(ctx context.Context) (Relayed, error) {
	done, err := p.relay.publishDue(ctx)
	if p.found = done.Pending > 0; p.found {
		p.relay.noLongerEmpty()
	}
	return done, err
}

// rest waits for a wake-up, or for the interval.
func (p *passes) rest(ctx context.Context) {
	gap := wakeGap
	if !p.found && !p.free.Allow() {
		gap = emptyPassWait
	}
	backoff.Sleep(ctx, gap)
	t := time.NewTimer(p.relay.about(p.relay.config.Interval))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.relay.woken:
	case <-ctx.Done():
	}
}

// Pass publishes the pending notifications that are due soon, then sweeps once over the waiting
// events for lost notifications. Run does the same in its loops; call Pass where no relay runs.
// More says that more work is left to do at once.
func (r *Relay) Pass(ctx context.Context) (Relayed, error) {
	done, err := r.publishDue(ctx)
	if err != nil {
		return done, err
	}
	walk := &walk{relay: r, publish: r.publish, reported: map[eventqueue.EventID]bool{}}
	for more := true; more && err == nil; more = walk.after != 0 {
		var swept Relayed
		swept, err = walk.page(ctx)
		done.Lost += swept.Lost
	}
	return done, err
}

// dueRounds bounds the pages of one pass, so that a pass ends even under a stream of pending
// notifications.
const dueRounds = 50

// publishDue publishes the pending notifications that are due soon.
func (r *Relay) publishDue(ctx context.Context) (Relayed, error) {
	var done Relayed
	for range dueRounds {
		wasDown := !r.publisher.Up()
		due, err := r.takeDue(ctx)
		refused := refusal.Is(err)
		if err = refusal.Report(r.log, err); err != nil {
			return done, fmt.Errorf("find pending notifications: %w", err)
		}
		published, err := r.publish(ctx, due)
		done.Pending += published
		if err != nil {
			return done, err
		}
		if done.More = len(due) >= r.portion(); !done.More {
			// It was a probe, and it is up again; or there may be others behind what is left out now.
			done.More = len(due) > 0 && wasDown || refused
			break
		}
	}
	return done, nil
}

func (r *Relay) takeDue(ctx context.Context) ([]eventqueue.Notification, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	limit := r.portion()
	if !r.publisher.Up() {
		// One notification shows whether the notifier works again. The others are left to workers,
		// which would not find them while a request hangs.
		limit = 1
	}
	return r.store.TakeDue(ctx, 2*r.config.Interval, limit)
}

// restAfterRefusal is about how long the relay rests when the notifier refuses.
const restAfterRefusal = time.Second

// errNotPublished ends a pass whose notifications the notifier refused.
var errNotPublished = errors.New("publish notifications")

// portionsPerSecond is how many requests a second the notifications are divided into at least, as
// long as they are published at the configured rate.
const portionsPerSecond = 10

// portion is how many notifications are taken and published at once: so few that none waits for long
// behind them (I20).
func (r *Relay) portion() int {
	return max(1, min(r.config.PerSecond/portionsPerSecond, eventqueue.MaxPublish))
}

// publish sends notifications that are marked as published, at the configured rate, and returns how
// many. Those that cannot be sent become pending again.
func (r *Relay) publish(ctx context.Context, notifications []eventqueue.Notification) (published int, err error) {
	for batch := range slices.Chunk(notifications, r.portion()) {
		if err := r.limiter.WaitN(ctx, len(batch)); err != nil {
			r.markPending(ctx, notifications[published:])
			return published, err
		}
		if err := r.send(ctx, batch, notifications[published+len(batch):]); err != nil {
			return published, err
		}
		published += len(batch)
	}
	return published, nil
}

// publishOrLeave sends notifications that are marked as published, in an order in which no canvas
// waits for all of another's, as long as the rate allows, and returns how many. It leaves the others
// pending, which are published canvas by canvas: so a search for what is lost waits for nothing, and
// finds the events of other canvases meanwhile (I20).
func (r *Relay) publishOrLeave(ctx context.Context, notifications []eventqueue.Notification) (published int, err error) {
	notifications = interleaved(notifications)
	for batch := range slices.Chunk(notifications, r.portion()) {
		if err := ctx.Err(); err != nil {
			r.markPending(ctx, notifications[published:])
			return published, err
		}
		if !r.limiter.AllowN(time.Now(), len(batch)) {
			return published, r.leavePending(ctx, notifications[published:])
		}
		if err := r.send(ctx, batch, notifications[published+len(batch):]); err != nil {
			return published, err
		}
		published += len(batch)
	}
	return published, nil
}

// send publishes a batch. If that fails, the batch becomes pending again, and so do the rest.
func (r *Relay) send(ctx context.Context, batch, rest []eventqueue.Notification) error {
	sending, cancel := outlive(ctx, publishAtStop)
	defer cancel()
	marking, cancel := outlive(ctx, publishAtStop+markAtStop) // from the same moment
	defer cancel()
	if err := r.publisher.Send(sending, batch); err != nil {
		r.publisher.MarkPending(marking, slices.Concat(batch, rest))
		return fmt.Errorf("%w: %w", errNotPublished, err)
	}
	return nil
}

// leavePending makes notifications pending that the rate does not allow yet, and has the loop that
// publishes pending ones begin.
func (r *Relay) leavePending(ctx context.Context, notifications []eventqueue.Notification) error {
	ids := make([]eventqueue.EventID, len(notifications))
	for i, n := range notifications {
		ids[i] = n.Event
	}
	ctx, stop := outlive(ctx, markAtStop)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	if err := refusal.Report(r.log, r.store.LeavePending(ctx, ids)); err != nil {
		return fmt.Errorf("leave %d lost notifications pending; they are found again by their age: %w", len(ids), err)
	}
	r.wake()
	return nil
}

// wake has the loop that publishes pending notifications begin, if it rests.
func (r *Relay) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// reportLost reports to workers that notifications were lost: their notifier may accept everything,
// deliver nothing, and report no error.
func (r *Relay) reportLost(ctx context.Context, lost []eventqueue.Notification) error {
	reporter, ok := r.store.(LostReporter)
	if !ok || len(lost) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	if err := reporter.ReportLost(ctx); err != nil {
		return fmt.Errorf("report lost notifications to workers: %w", err)
	}
	return nil
}

// listen keeps the connection open that wakes the relay. Without it the relay still works, on its
// timer.
func (r *Relay) listen(ctx context.Context, wake func()) {
	wait := backoff.New(r.config.Jitter)
	for {
		began := time.Now()
		err := r.store.Listen(ctx, wake)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > backoff.Most {
			wait.Reset()
		}
		r.log.Warn("lost the connection that wakes the relay", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}
