package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// WorkerConfig configures a Worker. The zero value is ready to use.
type WorkerConfig struct {
	// Concurrency is how many events may be in hand at once. Of 16 and more, a
	// sixteenth is kept for canvases that would otherwise wait behind a busy one.
	// Default (0): 500.
	Concurrency int

	// ClaimBatch is how many notifications one claim statement answers at most.
	// Default (0): 500; at most MaxPublish.
	ClaimBatch int

	// LockTimeout is how long a lock is valid without being renewed. All workers
	// and relays of a database should agree on it. Default (0): 1 minute.
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

	// UnknownDelay is the wait between the first ten looks at an event whose
	// handler this worker does not have; after them the relay rings for it.
	// Default (0): 5 s; at most 1 minute.
	UnknownDelay time.Duration

	// MaxEvents bounds how many events this worker claims: when so many have
	// ended, Run stops and returns. A claim counts, so an event that is run again
	// counts again; one whose answer was lost does not, as nothing runs then, and
	// neither does one that a rate limit puts off.
	// Default (0): no bound.
	MaxEvents int

	// TTL is how long the worker runs before it stops as when Run's context ends.
	// Default (0): no bound.
	TTL time.Duration

	// KeepHistory keeps completed events in event_log. Failed ones are kept
	// always.
	KeepHistory bool

	// Heartbeats renews claims; give it a connection of its own, so that busy
	// handlers cannot keep it waiting. Default (nil): the worker's store.
	Heartbeats ClaimStore

	// Jitter returns a random duration below its argument, which is positive.
	// Default (nil): rand.N. A simulation makes it repeatable.
	Jitter func(time.Duration) time.Duration

	// Observe is told every outcome, from many goroutines; it must return fast.
	// Default (nil): nobody is told.
	Observe func(Outcome)

	// Logger gets one info line per event at its end, and steps at debug.
	// Default (nil): none.
	Logger *zap.Logger
}

func (c WorkerConfig) withDefaults() WorkerConfig {
	setDefault(&c.Concurrency, 500)
	setDefault(&c.ClaimBatch, 500)
	setDefault(&c.LockTimeout, time.Minute)
	setDefault(&c.Heartbeat, c.LockTimeout/4)
	setDefault(&c.Lease, time.Minute)
	setDefault(&c.GracePeriod, 8*time.Second)
	setDefault(&c.UnknownDelay, 5*time.Second)
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration]
	}
	if c.Observe == nil {
		c.Observe = func(Outcome) {}
	}
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate names the first field that makes no sense.
func (c WorkerConfig) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Concurrency < 0:
		return fmt.Errorf("Concurrency is %d: it must be positive", c.Concurrency)
	case c.ClaimBatch < 0 || c.ClaimBatch > MaxPublish:
		return fmt.Errorf("ClaimBatch is %d: it must be from 1 to %d", c.ClaimBatch, MaxPublish)
	case c.LockTimeout < time.Second:
		return fmt.Errorf("LockTimeout is %s: it must be at least 1s", c.LockTimeout)
	case c.Heartbeat < 0 || c.Heartbeat > c.LockTimeout/2:
		return fmt.Errorf("Heartbeat is %s: it must be positive and at most half of LockTimeout (%s)", c.Heartbeat, c.LockTimeout)
	case c.Lease < time.Second || c.Lease > MaxRequeue:
		return fmt.Errorf("Lease is %s: it must be from 1s to %s", c.Lease, MaxRequeue)
	case c.MaxEvents < 0:
		return fmt.Errorf("MaxEvents is %d: it must not be negative; 0 means no bound", c.MaxEvents)
	case c.TTL < 0:
		return fmt.Errorf("TTL is %s: it must not be negative; 0 means no bound", c.TTL)
	case c.UnknownDelay < 0 || c.UnknownDelay > time.Minute:
		return fmt.Errorf("UnknownDelay is %s: it must be from 0 to 1m", c.UnknownDelay)
	default:
		return nil
	}
}

// Outcome is what became of one look at an event: the one vocabulary for logs,
// counters and tests.
type Outcome struct {
	Event   EventID
	Canvas  CanvasID
	Handler HandlerKey

	// Label is the last arrow followed and To where it led: Process when a run
	// begins, Queue when the notification goes back, End when it is dropped.
	Label machine.Label
	To    machine.State

	// Attempt is the fence token when the event was claimed.
	Attempt int32
	// TakenOver says that the claim took over an expired lock.
	TakenOver bool
	// Delay is the wait before the next look, when there is one.
	Delay time.Duration
	// Err is the error of a run that failed.
	Err error
	// Duration is how long the handler ran.
	Duration time.Duration
}

// Worker runs events: it pulls notifications, asks the database about them in
// batches, runs the handlers of what it could claim and writes how they ended.
// While there is nothing to pull it sends the database nothing.
type Worker struct {
	queue    *Queue
	store    ClaimStore
	beats    ClaimStore
	receiver Receiver
	handlers *Handlers
	known    Known
	config   WorkerConfig
	log      *zap.Logger

	started atomic.Bool
	slots   *slots // for what was notified
	spare   *slots // for what share finds and handOver runs; the same when there are few
	// keepSpare of these are for share alone.
	keepSpare int
	// pulledAll says that a pull brought as many notifications as were asked for.
	pulledAll atomic.Bool
	runs      runs
	unknown   unknown
	rates     rates
	// running counts the goroutines of handlers.
	running sync.WaitGroup
	ends    *mailbox[*finished]
	// turns are events whose turn in a line it has become, for handOver.
	turns   *mailbox[Event]
	answers chan answer
}

// NewWorker makes a Worker; Run starts it. The queue is for CompleteTx and for
// emitting from handlers.
func NewWorker(queue *Queue, store ClaimStore, receiver Receiver, handlers *Handlers, config WorkerConfig) (*Worker, error) {
	if queue == nil || store == nil || receiver == nil || handlers == nil {
		return nil, errors.New("eventqueue.NewWorker: queue, store, receiver and handlers must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("eventqueue.NewWorker: %w", err)
	}
	config = config.withDefaults()
	if config.Heartbeats == nil {
		config.Heartbeats = store
	}
	spare := config.Concurrency / spareShare
	w := &Worker{
		queue: queue, store: store, beats: config.Heartbeats, receiver: receiver,
		handlers: handlers, known: handlers.known(), config: config, log: config.Logger,
		slots:   newSlots(config.Concurrency - spare),
		runs:    newRuns(),
		rates:   newRates(config.ClaimBatch),
		ends:    newMailbox[*finished](),
		turns:   newMailbox[Event](),
		answers: make(chan answer, 2*config.Concurrency),
	}
	w.spare = w.slots
	if spare > 0 {
		w.spare, w.keepSpare = newSlots(spare), (spare+1)/2
	}
	return w, nil
}

// How many pulls are in flight: while one batch is claimed, the next one is
// already on its way.
const pullsInFlight = 2

// How long handlers have to return after their context was cancelled at the end
// of the grace period, and how long the last writes and then the last answers
// may take after that.
const (
	abandonAfter    = 500 * time.Millisecond
	lastWritesTake  = time.Second
	lastAnswersTake = time.Second / 2
)

// Run works until ctx ends, or MaxEvents or TTL is reached, then stops: it pulls
// no more, lets running handlers finish within GracePeriod, cancels those that
// have not (context.Cause is ErrStopping) and gives their events back unharmed:
// lock released, no attempt used, notification requeued at once. It returns nil
// after that, and an error only when it was called before.
//
// At MaxEvents there is nothing to give back: the worker has pulled no more
// notifications than it could use, and waits for the handlers as long as their
// own timeouts let them run. One that ignores its timeout keeps it from ending;
// TTL bounds that too.
//
// A handler that ignores its context is left running when the worker stops, but
// its event is given back; whatever it writes with its claim afterwards is
// refused.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return errors.New("eventqueue.Worker: Run was called twice")
	}
	ctx, stopBounds := w.bounded(ctx)
	defer stopBounds()
	// ctx stops the pulling, runs.stop the handlers, write stops what is written
	// about them, tell what the notifier is told.
	base := context.WithoutCancel(ctx)
	defer w.runs.stop(ErrStopping)
	write, stopWrite := context.WithCancel(base)
	defer stopWrite()
	tell, stopTelling := context.WithCancel(base)
	defer stopTelling()

	var receivers, finisher, counter, answerer, heart sync.WaitGroup
	for range pullsInFlight {
		receivers.Go(func() { w.receive(ctx, base) })
	}
	receivers.Go(func() { w.share(ctx, base) })
	receivers.Go(func() { w.handOver(ctx, base) })
	finisher.Go(func() { w.finish(write) })
	counter.Go(func() { w.reportRates(write) })
	answerer.Go(func() { w.answer(tell) })
	beat, stopBeat := context.WithCancel(base)
	defer stopBeat()
	heart.Go(func() { w.heartbeat(beat) })

	<-ctx.Done()
	end := time.Now().Add(max(w.config.GracePeriod, 0))
	grace, endGrace := context.WithDeadline(base, end)
	defer endGrace()
	receivers.Wait()
	w.rates.close()
	w.stopRuns(grace)
	// Whatever hangs, the last writes and answers have their time and no more. It
	// is counted from the end of the grace period, though all handlers may have
	// ended before: a database that comes back within it is still told how.
	if end = end.Add(abandonAfter); end.Before(time.Now()) { // a claim under way took long
		end = time.Now()
	}
	defer time.AfterFunc(time.Until(end.Add(lastWritesTake)), stopWrite).Stop()
	defer time.AfterFunc(time.Until(end.Add(lastWritesTake+lastAnswersTake)), stopTelling).Stop()
	w.ends.close()
	finisher.Wait()
	w.ringRest(tell)
	close(w.answers)
	answerer.Wait()
	stopBeat()
	heart.Wait()
	counter.Wait()
	return nil
}

// stopRuns waits for the running handlers, cancels them when grace ends, and
// gives up those that do not return even then. After it, nothing more is sent to
// w.ends.
func (w *Worker) stopRuns(grace context.Context) {
	idle := make(chan struct{})
	go func() {
		w.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-grace.Done():
		w.runs.stop(ErrStopping)
		select {
		case <-idle:
		case <-time.After(abandonAfter):
		}
	}
	w.runs.abandon(func(x *execution) {
		w.log.Warn("a handler does not return though its context has ended; its event is given back",
			zap.Stringer(logEvent, x.run.ID), zap.Stringer(logHandler, x.run.Handler()))
		w.ends.put(x.finished(machine.Released, ErrStopping))
	})
}
