package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/rounds"
)

// Worker runs events: it pulls notifications, claims their events in batches, runs the handlers and
// writes the completions. While there are no notifications it sends the database nothing.
type Worker struct {
	queue    *eventqueue.Queue
	store    Store
	beats    renewer
	receiver eventqueue.Receiver
	number   eventqueue.WorkerNumber
	breakers *breakers
	config   Config
	runs     *runs
	log      *zap.Logger

	started atomic.Bool
	// As configured; 0: not set.
	ownLockTimeout, ownHeartbeat time.Duration
	ailing                       atomic.Pointer[[]ailing] // the receiver and the reserve, for NotifierError
	answering                    *answering               // for it as well
	cancels                      cancelHints
	rounds                       rounds.Watch
}

// New makes a Worker; Run starts it. The queue is for CompleteTx and for
// emitting from handlers.
func New(queue *eventqueue.Queue, store Store, receiver eventqueue.Receiver, handlers *eventqueue.Handlers, config Config) (*Worker, error) {
	if queue == nil || store == nil || receiver == nil || handlers == nil {
		return nil, errors.New("worker.New: queue, store, receiver and handlers must not be nil")
	}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("worker.New: %w", err)
	}
	handlers, err := config.Wrap(handlers)
	if err != nil {
		return nil, fmt.Errorf("worker.New: %w", err)
	}
	ownLockTimeout, ownHeartbeat := config.LockTimeout, config.Heartbeat
	config = config.withDefaults()
	w := &Worker{
		queue: queue, store: store, beats: store, receiver: receiver,
		number: newWorkerNumber(), config: config, runs: newRuns(), log: config.Logger, answering: newAnswering(), cancels: cancelHints{newBatcher[cancelHint]()},
		ownLockTimeout: ownLockTimeout, ownHeartbeat: ownHeartbeat,
	}
	w.breakers = newBreakers(w.part(), handlers)
	return w, nil
}

// Stalled returns an error that names the loops of the worker that have not gone round for much
// longer than their calls may take, or says that handlers that do not return hold all slots (see
// HungLimit), or nil: then only a new process helps. A database or a notifier
// that hangs is no such case. Ask every few seconds; it costs nothing. It is safe for concurrent use.
func (w *Worker) Stalled() error { return errors.Join(w.rounds.Stalled(), w.stuck()) }

// stuck returns an error if all slots have been held by handlers that hang for longer than
// HungLimit: then only a new process helps.
func (w *Worker) stuck() error {
	if w.config.HungLimit < 0 {
		return nil
	}
	now, held := time.Now(), 0
	for _, x := range w.runs.overdue(now) {
		if x.slot && now.Sub(x.over) > w.config.HungLimit {
			held++
		}
	}
	// What is reserved serves events of other canvases only.
	if all := w.config.Concurrency - w.config.Concurrency/reservedFraction; held < all {
		return nil
	}
	return fmt.Errorf("all %d slots have been held for more than %s by handlers that do not return though their contexts have ended, "+
		"and %d more were given up (MaxHung): the log has their stacks", w.config.Concurrency, w.config.HungLimit, max(w.config.MaxHung, 0))
}

// Slots returns how the worker is occupied. It costs nothing, and is safe for concurrent use.
func (w *Worker) Slots() Slots { return w.runs.slots(time.Now(), w.config.Concurrency) }

func (w *Worker) part() part {
	return part{config: &w.config, store: w.store, log: w.log, rounds: &w.rounds}
}

// Run works until ctx ends, or MaxEvents or TTL is reached, then stops: it pulls no more, lets
// running handlers return within GracePeriod, cancels those that have not (context.Cause is
// ErrStopping) and releases their events: no attempt is used, and the notification is requeued at
// once. It returns nil after that.
//
// At MaxEvents nothing has to be released: the worker has pulled no more notifications than it
// could use, and waits for the handlers as long as their own timeouts let them run. A handler that
// ignores its timeout keeps Run from returning; TTL bounds that too.
//
// A handler that ignores its context is left running when the worker stops, but its event is
// released; whatever it writes with its claim afterwards is refused.
//
// It waits for a database that cannot be reached yet, and logs that once. It returns an error when
// waiting does not help (an *UnfitError, a *locktimeout.Error, a statement that the database
// refuses), when the notifier turns out to be configured so that events would be lost or late, and
// when it was called before.
func (w *Worker) Run(ctx context.Context) (err error) {
	if w.started.Swap(true) {
		return errors.New("worker.Worker: Run was called twice")
	}
	ctx, bound, stopBounds := w.bounded(ctx)
	defer stopBounds()
	if err := w.begin(ctx); err != nil {
		return fmt.Errorf("worker.Worker: %w", err)
	}
	base := context.WithoutCancel(ctx)
	ctx, endReserve, err := w.openReserve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, endReserve()) }()
	newParts(deps{
		part:  w.part(),
		queue: w.queue, handlers: w.breakers.handlers, number: w.number, breakers: w.breakers, receiver: w.receiver, renewer: w.beats, bound: bound, runs: w.runs,
		answering: w.answering, cancels: w.cancels,
	}).run(ctx, base)
	return nil
}
