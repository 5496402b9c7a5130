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
	"eventsv2/internal/lostanswer"
)

// Store finds events that need a notification. pgstore.Store implements it. If it is a
// maintenance.AwaitingStore, what a search may have taken whose answer is lost is marked as pending.
type Store interface {
	search
	TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) ([]eventqueue.Notification, error)
	MarkPending(ctx context.Context, ids []eventqueue.EventID) error
}

// search finds lost notifications.
type search interface {
	TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error)
	TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error)
}

// Primary is a receiver that can also check at once whether its notifier works.
// pubsubnotify.Notifier implements it.
type Primary interface {
	eventqueue.Receiver
	Check(ctx context.Context) error
}

// Config configures a Receiver. The zero value is ready to use.
type Config struct {
	// After is how long pulls must fail before the notifier counts as down. If a Check
	// fails, it counts as down at once. Default (0): 3 s.
	After time.Duration

	// CheckEvery is the time between two Checks while the notifier delivers nothing.
	// Without its topic, a notifier would deliver nothing and report no error.
	// Default (0): 5 s.
	CheckEvery time.Duration

	// Poll is the time between two polls for due events. Default (0): 1 s.
	Poll time.Duration

	// PollFor is how long the database is polled after a program could not publish, even
	// if the notifier of this process works. Default (0): 10 s.
	PollFor time.Duration

	// Sweep is the time between two searches for lost notifications while the notifier
	// is down. LostAfter is how old the last notification of an event must be to count as
	// lost; a younger one may still be on its way. Defaults (0): 1.5 s, 2 s.
	Sweep, LostAfter time.Duration

	// Listen listens until ctx ends or it fails. It calls wake when it begins to listen,
	// and whenever a program could not publish. lost means that a relay has published
	// notifications again that the notifier seems to have lost. Default (nil): no
	// listening.
	Listen func(ctx context.Context, wake func(lost bool)) error

	// ProbeEvery is the time between two checks of a notifier that is down, and also bounds
	// each check. Default (0): 2 s.
	ProbeEvery time.Duration

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
	}{{&c.After, 3 * time.Second}, {&c.CheckEvery, 5 * time.Second}, {&c.Poll, time.Second}, {&c.PollFor, 10 * time.Second},
		{&c.Sweep, 1500 * time.Millisecond}, {&c.LostAfter, 2 * time.Second}, {&c.ProbeEvery, 2 * time.Second}} {
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

// Receiver is an eventqueue.Receiver on a notifier and a database. It is safe for
// concurrent use. Run Attend beside its other methods: Attend listens for programs that
// cannot publish. When Attend has returned, the Receiver no longer pulls from the
// notifier.
type Receiver struct {
	taking chan struct{} // holds one value while due events are taken

	primary Primary
	local   *memnotify.Notifier
	store   Store
	search  search                                // of the store
	takes   *lostanswer.Takes[eventqueue.EventID] // without an answer
	wait    *lostanswer.Wait                      // for the answers of polls
	config  Config
	fetched chan fetched // deliveries of the notifier; unbuffered
	fetches tasks        // running pulls of the notifier, and their deliveries until a Pull takes them

	localMu sync.Mutex // held from counting the ready notifications to taking them

	mu      sync.Mutex
	changed chan struct{} // closed and replaced after a change that waiting Pulls have to see
	pulling int           // running calls of Pull
	asking  int           // pulls of the notifier whose deliveries no Pull has taken yet
	health
	suspicion
	searches
	// Events in the local queue: the notifications of those in pending were never
	// published, and those in declined are left to other workers when their delay is over.
	pending, declined map[eventqueue.EventID]struct{}
	handed            map[eventqueue.EventID]struct{} // events in the local queue that Hand has put there
}

// fetched is the result of one pull of the notifier.
type fetched struct {
	ctx        context.Context //nolint:containedctx // of the pull that returned them; it ends with the program
	deliveries []eventqueue.Delivery
}

// New makes a Receiver.
func New(primary Primary, store Store, config Config) (*Receiver, error) {
	if primary == nil || store == nil {
		return nil, errors.New("fallback.New: primary and store must not be nil")
	}
	config = config.withDefaults()
	r := &Receiver{primary: primary, local: memnotify.New(memnotify.Config{}), store: store, search: store, config: config,
		wait:    lostanswer.NewWait(lostanswer.AnswerTakes, statementTakes),
		taking:  make(chan struct{}, 1),
		fetched: make(chan fetched), changed: make(chan struct{}), pending: map[eventqueue.EventID]struct{}{}, declined: map[eventqueue.EventID]struct{}{}, handed: map[eventqueue.EventID]struct{}{},
		suspicion: suspicion{heard: time.Now()}}
	r.takes = lostanswer.New(marking{r}, config.Logger)
	if awaiting, ok := store.(maintenance.AwaitingStore); ok {
		r.search = awaiting.Awaiting(r.takes.Await)
	}
	return r, nil
}

// signal makes every waiting Pull check again. The caller holds mu.
func (r *Receiver) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// listenAgain is the wait before the next listening connection after one has failed.
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
	r.taking <- struct{}{} // a poll that is under way ends with its context, and says what it may have taken
	defer func() { <-r.taking }()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), markAtEnd)
	defer cancel()
	_ = r.takes.Close(closing) // what is left is found by its age
	return err
}

// markAtEnd bounds the last try to mark as pending what may have been taken without an answer.
const markAtEnd = time.Second

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

// Pull implements eventqueue.Receiver. It does not return failures of the notifier, but
// searches the database instead.
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
		if found, err := r.poll(ctx, max); err != nil {
			return nil, fmt.Errorf("query due events in the database: %w", err)
		} else if found {
			continue
		}
		r.fetch(ctx, max)
		select { // deliveries that came during the query go before the next query
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

// handOver returns at most max deliveries, and offers the rest to another Pull.
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

// fetch begins a pull of the notifier, if there is a Pull without one and the time for it
// has come. That pull may outlive the Pull that began it: if it were cut off, its messages
// would have to be delivered once more. While the notifier is down, fetch tries it
// instead.
func (r *Receiver) fetch(ctx context.Context, max int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case time.Now().Before(r.askAt):
	case r.down && !r.trying:
		if r.trying = r.fetches.begin(func() { r.try(ctx, max) }); !r.trying {
			r.askAt = time.Now().Add(r.config.ProbeEvery)
		}
	case !r.down:
		r.ask(ctx, max)
	}
}

// ask begins a pull of the notifier, if there is a Pull without one. The caller holds mu.
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
		r.askAt = time.Now().Add(r.config.ProbeEvery)
		return
	}
	r.asking++
}

// done records that a pull that ask began is complete.
func (r *Receiver) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asking--
	r.signal()
}

// keepFor is how long deliveries wait for a Pull of a worker that is full, and
// giveBackTakes bounds the requeue after that.
const (
	keepFor       = 2 * time.Second
	giveBackTakes = time.Second
)

// offer passes deliveries to a Pull, or requeues them if none comes for a while.
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
		r.config.Logger.Warn("could not requeue notifications; they come again when their lease ends", zap.Error(err))
	}
}

// errDown is the error of acknowledgements while the notifier is down.
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

// answer sends each answer to the receiver of its delivery: the local queue or the
// notifier.
func (r *Receiver) answer(deliveries []eventqueue.Delivery, send func(eventqueue.Receiver, []eventqueue.Delivery) error) error {
	local, primary := split(deliveries)
	var errs []error
	if len(local) > 0 {
		errs = append(errs, send(r.local, local))
		r.mu.Lock()
		r.signal() // one of them may be due earlier than the end of the wait
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
