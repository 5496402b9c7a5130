package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/lostanswer"
	"eventsv2/internal/refusal"
	"eventsv2/internal/rounds"
)

// RelayConfig configures a Relay. The zero value is ready to use.
type RelayConfig struct {
	// Interval is the time between two passes; a commit with urgent pending notifications wakes the
	// relay earlier. Default (0): 30 s; at most 4 minutes, so that an event that becomes due
	// between two passes is within MaxRequeue at the first.
	Interval time.Duration

	// LostAfter is how long ago the last notification of a due event must be to count as lost the
	// first time. Default (0): 1 minute.
	LostAfter time.Duration

	// PerSecond bounds how many notifications are published. Default (0):
	// 20,000.
	PerSecond int

	// PublishTimeout bounds one request to the notifier; when Run is stopped, it has 2 s at most.
	// Default (0): 5 s.
	PublishTimeout time.Duration

	// Explain finds the reason for the line of the log that says that nothing has run for a minute
	// although something is due. Default (nil): the line names the event only.
	Explain Explain

	// Observe is called when notifications were published, from several goroutines; it must return
	// fast. Default (nil): none.
	Observe func(Relayed)

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an info line when something was published, and a warning when
	// that failed. Default (nil): none.
	Logger *zap.Logger
}

func (c RelayConfig) withDefaults() RelayConfig {
	c.Interval = cmp.Or(c.Interval, 30*time.Second)
	c.LostAfter = cmp.Or(c.LostAfter, time.Minute)
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
	}{{"Interval", c.Interval}, {"LostAfter", c.LostAfter}, {"PublishTimeout", c.PublishTimeout}} {
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
	searches  searches                              // of the store
	lost      *lostanswer.Takes[eventqueue.EventID] // what statements without an answer may have taken
	publisher *eventqueue.Sender
	config    RelayConfig
	limiter   *rate.Limiter
	log       *zap.Logger

	// emptyUntil is until when the rounds rest because the walk found no event, in nanoseconds of
	// Unix time.
	emptyUntil atomic.Int64

	// counted reports whether the walk has found counts of the last minutes.
	counted atomic.Bool

	// woken wakes the loop that publishes pending notifications.
	woken chan struct{}

	rounds rounds.Watch

	// readFrom holds the time before which no round reads its next part, for the round that
	// does so.
	readFrom chan time.Time
}

// PublishError is like PublishError of Queue, for the notifications of the relay.
func (r *Relay) PublishError() error { return r.publisher.LastError() }

// Relayed counts what one pass has published.
type Relayed struct {
	// Pending were due and had no notification yet.
	Pending int
	// Lost had a notification that did not lead to a run. Those that the rate did not allow yet
	// are left pending, and are counted there.
	Lost int
	// More reports whether the pass ended before all pending notifications were published.
	More bool
}

// maxInterval keeps twice the interval below MaxRequeue.
const maxInterval = 4 * time.Minute

// NewRelay makes a Relay; Run starts it.
func NewRelay(store RelayStore, notifier eventqueue.Publisher, config RelayConfig) (*Relay, error) {
	if store == nil || notifier == nil {
		return nil, errors.New("maintenance.NewRelay: store and notifier must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("maintenance.NewRelay: %w", err)
	}
	config = config.withDefaults()
	relay := &Relay{
		store:     store,
		publisher: eventqueue.NewSender(notifier, store, config.PublishTimeout, 0, config.Logger),
		config:    config,
		limiter:   rate.NewLimiter(rate.Limit(config.PerSecond), max(config.PerSecond, eventqueue.MaxPublish)),
		log:       config.Logger,
		woken:     make(chan struct{}, 1),
		readFrom:  make(chan time.Time, 1),
	}
	relay.lost = lostanswer.New(store, config.Logger)
	relay.searches = searchesOf(store, relay.lost.Await)
	relay.readFrom <- time.Time{}
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
	defer closeTakes(ctx, r.lost)()
	var parts sync.WaitGroup
	if store, ok := r.store.(MinuteStore); ok {
		tables := &minuteTables{store: store, loop: r.rounds.Loop("relay that counts what is pending"), log: r.log, jitter: r.config.Jitter, explain: r.config.Explain,
			empty: func() bool { return r.emptyFor() > 0 && !r.counted.Load() }}
		parts.Go(func() { tables.run(ctx) })
	}
	parts.Go(func() {
		passes := &passes{relay: r, takes: newDueTakes(r.store, r.lost, 2*r.config.Interval, lostanswer.AnswerTakes), free: rate.NewLimiter(rate.Every(emptyPassWait), freeEmptyPasses),
			loop: r.rounds.Loop("relay that publishes pending notifications")}
		r.loop(ctx, passes.on, func() { passes.rest(ctx) }, passes.loop)
	})
	for _, stage := range []RoundStage{RoundOfHandlers, RoundOfGroups, RoundOfRuns} {
		parts.Go(func() {
			round := &round{relay: r, after: RoundPlace{Stage: stage}}
			backoff.Sleep(ctx, time.Duration(stage)*roundsApart)
			r.loop(ctx, round.on, func() { round.rest(ctx) }, r.rounds.Loop("relay that looks for lost notifications"))
		})
	}
	parts.Go(func() {
		walk := &walk{relay: r, publish: r.publishOrLeave, reported: map[eventqueue.EventID]bool{}}
		r.loop(ctx, walk.on, func() {
			if !time.Now().Before(deleteKeysAt) {
				r.deleteKeys(ctx)
				deleteAttempts(ctx, r.store, r.log)
				deleteWorkers(ctx, r.store, r.log)
				deleteKeysAt = time.Now().Add(deleteKeysEvery)
			}
			walk.rest(ctx)
		}, r.rounds.Loop("relay that walks over all events"))
	})
	parts.Wait()
	return nil
}

// loop does a part of the relay's work until ctx ends, and rests when none is left. The parts run
// concurrently, so that none delays another (I20).
func (r *Relay) loop(ctx context.Context, work func(context.Context) (Relayed, error), rest func(), loop *rounds.Loop) {
	wait := backoff.New(r.config.Jitter)
	defer loop.Ends()
	for ctx.Err() == nil {
		loop.Within(r.stepTakes())
		done, err := work(ctx)
		loop.Within(2 * backoff.Most) // of a wait after a failure
		if done.Pending+done.Lost > 0 {
			r.log.Info("published notifications", zap.Int("pending", done.Pending), zap.Int("lost", done.Lost))
			if r.config.Observe != nil {
				r.config.Observe(done)
			}
		}
		if err != nil {
			if errors.Is(err, errNotPublished) { // the publisher has logged it, once
				backoff.Sleep(ctx, restAfterRefusal/2+r.config.Jitter(restAfterRefusal))
				continue
			}
			if ctx.Err() == nil {
				r.log.Warn("could not relay notifications; trying again: if this goes on, see that Postgres can be reached and that the role has the rights of queue_cron",
					zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			}
			wait.Pause(ctx)
			continue
		}
		wait.Reset()
		if !done.More {
			loop.Waits() // an idle relay rests for any time
			rest()
		}
	}
}

// stepTakes is how long one step of a loop may take by its time-outs: a page of a pass, a part of a
// round, which may wait for the parts of the other two, or a page of the walk.
func (r *Relay) stepTakes() time.Duration { return 6*statementTakes + 2*r.config.PublishTimeout }

// Stalled returns an error that names the loops of the relay that have not gone round for much
// longer than their calls may take, or nil; see Stalled of worker.Worker.
func (r *Relay) Stalled() error { return r.rounds.Stalled() }

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
	takes *dueTakes
	loop  *rounds.Loop // of the passes
}

func (p *passes) on(ctx context.Context) (Relayed, error) {
	done, err := p.relay.publishDue(ctx, p.loop, p.takes)
	if p.found = done.Pending > 0; p.found {
		p.relay.noLongerEmpty()
	}
	return done, err
}

// rest waits for a wake-up, or for the interval, which goes on while the walk finds no event.
func (p *passes) rest(ctx context.Context) {
	gap := wakeGap
	if !p.found && !p.free.Allow() {
		gap = emptyPassWait
	}
	backoff.Sleep(ctx, gap)
	every := time.NewTicker(p.relay.about(p.relay.config.Interval))
	defer every.Stop()
	var low <-chan time.Time // never
	if rest := lowRest(p.relay.store); rest > 0 {
		low = time.After(rest)
	}
	for {
		select {
		case <-low:
			return
		case <-every.C:
			if p.relay.emptyFor() <= 0 {
				return
			}
		case <-p.relay.woken:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Pass publishes the pending notifications that are due soon, then sweeps once over the waiting
// events for lost notifications. Run does the same in its loops; call Pass where no relay runs.
// More says that more work is left to do at once.
func (r *Relay) Pass(ctx context.Context) (Relayed, error) {
	defer closeTakes(ctx, r.lost)()
	done, err := r.publishDue(ctx, nil, newDueTakes(r.store, r.lost, 2*r.config.Interval, statementTakes)) // a slow database must not fail each call
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

// publishDue publishes the pending notifications that are due soon. Each page is a step of the loop,
// which may be nil.
func (r *Relay) publishDue(ctx context.Context, loop *rounds.Loop, takes *dueTakes) (Relayed, error) {
	var done Relayed
	for range dueRounds {
		loop.Within(r.stepTakes())
		wasDown := !r.publisher.Up()
		due, err := takes.take(ctx, r.mostDue())
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

// mostDue is how many due events are taken at once.
func (r *Relay) mostDue() int {
	if !r.publisher.Up() {
		// One notification shows whether the notifier works again. The others are left to workers,
		// which would not find them while a request hangs.
		return 1
	}
	return r.portion()
}

// wake has the loop that publishes pending notifications begin, if it rests.
func (r *Relay) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
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
