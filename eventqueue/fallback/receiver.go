package fallback

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
)

// Store finds events that should be notified; pgstore.Store is one.
type Store interface {
	TakeDue(ctx context.Context, within time.Duration, limit int) ([]eventqueue.Notification, error)
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lockTimeout time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error)
	TakeRound(ctx context.Context, after maintenance.RoundPlace, quiet, lockTimeout time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error)
	MarkPending(ctx context.Context, ids []eventqueue.EventID) error
}

// Primary is a receiver that can also report at once whether it is reachable;
// pubsubnotify.Notifier is one.
type Primary interface {
	eventqueue.Receiver
	Check(ctx context.Context) error
}

// Config configures a Receiver. The zero value is ready to use.
type Config struct {
	// After is how long pulls must have failed before the notifier counts as down.
	// After a Check that fails it counts as down at once. Default (0): 3 s.
	After time.Duration

	// CheckEvery is the time between two Checks of a notifier that has nothing to
	// deliver: without its topic it would deliver nothing, and report no error.
	// Default (0): 5 s.
	CheckEvery time.Duration

	// Poll is the time between two polls for due events. Default (0): 1 s.
	Poll time.Duration

	// Linger is for how long the database is polled after a program could not publish,
	// although the notifier seems well. Default (0): 10 s.
	Linger time.Duration

	// Sweep is the time between two searches for lost notifications while the notifier
	// is down. Quiet is how old the last notification of an event must be for that:
	// other programs may still publish. Defaults (0): 1.5 s, 2 s.
	Sweep, Quiet time.Duration

	// Listen calls wake once it listens, and whenever a program could not publish,
	// until ctx ends or it fails. It sets lost when a relay has published notifications
	// again that the notifier seems to have lost. Default (nil): no listening.
	Listen func(ctx context.Context, wake func(lost bool)) error

	// LockTimeout is the workers'. Default (0): 1 minute.
	LockTimeout time.Duration

	// Probe is the time between two checks of a notifier that is down, and how
	// long one may take. Default (0): 2 s.
	Probe time.Duration

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Logger gets an entry when the fallback begins and when it ends.
	// Default (nil): nothing is logged.
	Logger *zap.Logger
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.After, 3 * time.Second}, {&c.CheckEvery, 5 * time.Second}, {&c.Poll, time.Second}, {&c.Linger, 10 * time.Second},
		{&c.Sweep, 1500 * time.Millisecond}, {&c.Quiet, 2 * time.Second}, {&c.LockTimeout, time.Minute}, {&c.Probe, 2 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

// Receiver is an eventqueue.Receiver on a notifier and a database. It is safe
// for concurrent use. Attend has to run beside its calls for it to hear of those who
// cannot publish; when it has returned, the notifier is not pulled from any more.
type Receiver struct {
	primary Primary
	local   *memnotify.Notifier
	store   Store
	config  Config
	fetched chan fetched // what the notifier has delivered; unbuffered
	fetches tasks        // pulls of the notifier under way, and what they have brought

	localMu sync.Mutex // makes counting and taking one step

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when something has changed that a Pull may wait for
	pulling int           // calls of Pull
	asking  int           // pulls of the notifier, until they are handed over
	health
	suspicion
	searches
	// Of what is in the local queue, pending has had no notification, and declined is what
	// others are to have when its delay is over.
	pending, declined map[eventqueue.EventID]struct{}
}

// fetched is what one pull of the notifier has brought.
type fetched struct {
	ctx        context.Context //nolint:containedctx // of the pull that brought them, and ends with the program
	deliveries []eventqueue.Delivery
}

// New makes a Receiver.
func New(primary Primary, store Store, config Config) (*Receiver, error) {
	if primary == nil || store == nil {
		return nil, errors.New("fallback.New: primary and store must not be nil")
	}
	return &Receiver{primary: primary, local: memnotify.New(memnotify.Config{}), store: store, config: config.withDefaults(),
		fetched: make(chan fetched), changed: make(chan struct{}), pending: map[eventqueue.EventID]struct{}{}, declined: map[eventqueue.EventID]struct{}{},
		suspicion: suspicion{heard: time.Now()}}, nil
}

// signal has every waiting Pull check again. Called with mu held.
func (r *Receiver) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// listenAgain is the pause after a listening connection that broke.
const listenAgain = 2 * time.Second

// Attend implements eventqueue.RemoteReceiver: it listens for programs that could not
// publish, and runs the notifier's own Attend. It ends when ctx does.
func (r *Receiver) Attend(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.fetches.open()
	var listening sync.WaitGroup
	if r.config.Listen != nil {
		listening.Go(func() { r.listen(ctx) })
	}
	var err error
	if a, ok := r.primary.(interface {
		Attend(ctx context.Context) error
	}); ok {
		err = a.Attend(ctx)
	}
	if err == nil {
		<-ctx.Done()
	}
	stop()
	listening.Wait()
	r.fetches.close()
	return err
}

func (r *Receiver) listen(ctx context.Context) {
	said := false
	for {
		err := r.config.Listen(ctx, func(lost bool) {
			said = false
			if lost {
				r.suspect()
				return
			}
			r.wake()
		})
		if ctx.Err() != nil {
			return
		}
		if !said {
			r.config.Logger.Warn("cannot listen for events that could not be published; they start when the relay finds them", zap.Error(err))
			said = true
		}
		select {
		case <-time.After(listenAgain/2 + r.config.Jitter(listenAgain)):
		case <-ctx.Done():
			return
		}
	}
}

// Pull implements eventqueue.Receiver. Failures of the notifier are not returned:
// they are why this package exists.
func (r *Receiver) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	r.mu.Lock()
	r.pulling++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pulling--
	}()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if found, err := r.pullLocal(ctx, max); err != nil || len(found) > 0 {
			return found, err
		}
		if polledAt, err := r.poll(ctx, max); err != nil {
			return nil, fmt.Errorf("look for due events in the database: %w", err)
		} else if polledAt {
			continue
		}
		r.fetch(ctx, max)
		select { // what has come while the database was asked goes before asking it again
		case f := <-r.fetched:
			return r.handOver(f, max), nil
		default:
		}
		timer := time.NewTimer(r.nextTime())
		select {
		case f := <-r.fetched:
			timer.Stop()
			return r.handOver(f, max), nil
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// handOver returns what a Pull may return, and keeps the rest for another.
func (r *Receiver) handOver(f fetched, max int) []eventqueue.Delivery {
	if len(f.deliveries) > max {
		r.mu.Lock()
		r.asking++
		r.mu.Unlock()
		rest := fetched{f.ctx, f.deliveries[max:]}
		if !r.fetches.begin(func() { r.offer(rest) }) {
			r.giveBack(rest)
			r.done()
		}
	}
	return f.deliveries[:min(max, len(f.deliveries))]
}

// fetch begins a pull of the notifier, if there is a Pull that has none and the
// notifier may be asked. The pull outlives the Pull that began it: one that is cut
// off costs its messages a round. While the notifier is down it is tried instead.
func (r *Receiver) fetch(ctx context.Context, max int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case time.Now().Before(r.askAt):
	case r.down && !r.trying:
		if r.trying = r.fetches.begin(func() { r.try(ctx, max) }); !r.trying {
			r.askAt = time.Now().Add(r.config.Probe)
		}
	case !r.down:
		r.ask(ctx, max)
	}
}

// ask begins a pull, if there is a Pull that has none. Called with mu held.
func (r *Receiver) ask(ctx context.Context, max int) {
	if r.asking >= r.pulling {
		return
	}
	begun := r.fetches.begin(func() {
		began := time.Now()
		deliveries, err := r.primary.Pull(ctx, max)
		r.record(ctx, err, len(deliveries), time.Since(began))
		if len(deliveries) == 0 {
			r.done()
			return
		}
		r.offer(fetched{ctx, deliveries})
	})
	if !begun {
		r.askAt = time.Now().Add(r.config.Probe)
		return
	}
	r.asking++
}

// done ends what ask began.
func (r *Receiver) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	r.signal()
}

// How long notifications are kept for a worker that is full, and how long it may take
// to give them back.
const (
	keepFor       = 2 * time.Second
	giveBackTakes = time.Second
)

// offer hands deliveries to a Pull, or gives them back when there is none for a while.
func (r *Receiver) offer(f fetched) {
	defer r.done()
	timer := time.NewTimer(keepFor)
	defer timer.Stop()
	select {
	case r.fetched <- f:
		return
	case <-timer.C:
	case <-f.ctx.Done():
	}
	r.giveBack(f)
}

// giveBack requeues at once the deliveries that no Pull has taken.
func (r *Receiver) giveBack(f fetched) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), giveBackTakes)
	defer cancel()
	if err := r.primary.Requeue(ctx, f.deliveries, 0); err != nil {
		r.config.Logger.Warn("could not give back notifications; they come again when their lease ends", zap.Error(err))
	}
}

// errDown is the answer to acknowledgements while the notifier is down.
var errDown = errors.New("the notifier is down")

// Ack implements eventqueue.Receiver.
func (r *Receiver) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	local, _ := split(deliveries)
	r.remove(local)
	return r.answer(deliveries, func(to eventqueue.Receiver, ds []eventqueue.Delivery) error { return to.Ack(ctx, ds) })
}

// Requeue implements eventqueue.Receiver.
func (r *Receiver) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	return r.answer(deliveries, func(to eventqueue.Receiver, ds []eventqueue.Delivery) error { return to.Requeue(ctx, ds, after) })
}

// answer sends each delivery's answer to where it came from.
func (r *Receiver) answer(deliveries []eventqueue.Delivery, send func(eventqueue.Receiver, []eventqueue.Delivery) error) error {
	local, primary := split(deliveries)
	var errs []error
	if len(local) > 0 {
		errs = append(errs, send(r.local, local))
		r.mu.Lock()
		r.signal() // it may be due earlier than what is waited for
		r.mu.Unlock()
	}
	switch {
	case len(primary) == 0:
	case r.isDown():
		errs = append(errs, errDown)
	default:
		errs = append(errs, send(r.primary, primary))
	}
	return errors.Join(errs...)
}
