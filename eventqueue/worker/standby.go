package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// Standby is a Store that can lend a worker a connection beside its others;
// pgstore.Store is one.
type Standby interface {
	Store

	// Reserve returns a connection that is opened when it is first used. For as long as it is open,
	// and after each time that it was opened again, the worker counts as live.
	Reserve(self Registration, log *zap.Logger) Reserve
}

// Reserve is a connection of a worker's own. It is safe for concurrent use.
type Reserve interface {
	// Renew is like Renew of Store, on this connection.
	Renew(ctx context.Context, claims []Claim) (WriteResult, error)

	// Behind returns a Receiver that passes everything on to a notifier and finds due events in the
	// database while that is down, and for a while after another program has reported on this
	// connection that it could not publish. Otherwise it sends the database nothing.
	Behind(primary eventqueue.RemoteReceiver, log *zap.Logger) (eventqueue.Receiver, error)

	// Hold keeps the connection open until ctx ends or the connection breaks; then it returns why. It
	// sends the database nothing. A Reserve that is behind a receiver is held by that.
	Hold(ctx context.Context) error

	// Failure returns a wakeups.Error while the connection cannot be held, and nil before it is first used.
	Failure() error

	// Close closes the connection, and records that the worker has stopped.
	Close()
}

// NotifierError returns why notifications cannot be pulled, so that due events are found in the
// database, or, as a wakeups.Error, why nothing wakes the worker over Postgres, or, as an *UntakenError, why they could not be acknowledged or requeued for the last ten
// seconds or more, so that they come again. It is nil while the notifier works, and before Run; a worker without the
// fallback does not know whether notifications can be pulled. It may be called at any time.
func (w *Worker) NotifierError() error {
	if parts := w.ailing.Load(); parts != nil {
		for _, part := range *parts {
			if err := part.Failure(); err != nil {
				return err
			}
		}
	}
	return w.answering.failure()
}

// forwardedTo is a Reserve that hears what other workers forward.
type forwardedTo interface {
	// OnForwarded is called before the Reserve is used. try must return fast.
	OnForwarded(try func(ids []eventqueue.EventID))
}

// handing is a Receiver that can deliver to its own worker what others have forwarded. It may drop some of them.
type handing interface {
	Hand(ctx context.Context, notifications []eventqueue.Notification)
}

// hearForwarded connects a reserve with the receiver of its worker.
func hearForwarded(reserve Reserve, receiver eventqueue.Receiver) {
	listener, hears := reserve.(forwardedTo)
	to, hands := receiver.(handing)
	if !hears || !hands {
		return
	}
	listener.OnForwarded(func(ids []eventqueue.EventID) {
		notifications := make([]eventqueue.Notification, len(ids))
		for i, id := range ids {
			notifications[i].Event = id
		}
		to.Hand(context.Background(), notifications) // it hands on within this process
	})
}

// hearsCancelled is a Reserve that hears which events are cancelled while they run.
type hearsCancelled interface {
	// OnCancelled is called before the Reserve is used. renew must return fast. What it is given is a hint: it may be wrong. nil means
	// any event, as after a time in which the Reserve heard nothing.
	OnCancelled(renew func(ids []eventqueue.EventID))
}

// attendant is a Receiver with background work; see RemoteReceiver.
type attendant interface {
	Attend(ctx context.Context) error
}

// openReserve gives the worker the connection that its store can lend it, if it needs one, and
// starts the receiver's background work. The context that it returns ends when ctx does or when the
// receiver must not be used; end releases everything and returns the reason in the latter case.
func (w *Worker) openReserve(ctx context.Context) (_ context.Context, end func() error, err error) {
	var reserve Reserve
	standby, able := w.store.(Standby)
	primary, remote := w.receiver.(eventqueue.RemoteReceiver)
	falls := remote && !w.config.NoFallback
	if able {
		reserve = standby.Reserve(w.registration(), w.log)
		w.beats = reserve
	}
	if w.config.Heartbeats != nil {
		w.beats = w.config.Heartbeats
	}
	if reserve != nil && falls {
		if w.receiver, err = reserve.Behind(primary, w.log); err != nil {
			reserve.Close()
			return nil, nil, fmt.Errorf("worker.Worker: %w", err)
		}
	}
	var parts []ailing
	hearForwarded(reserve, w.receiver)
	if listener, hears := reserve.(hearsCancelled); hears {
		listener.OnCancelled(w.cancels.hear)
	}
	if receiver, ok := w.receiver.(ailing); ok {
		parts = append(parts, receiver)
	}
	if reserve != nil {
		parts = append(parts, reserve)
	}
	w.ailing.Store(&parts)
	ctx, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	if reserve != nil && !falls {
		beside.Go(func() { w.hold(ctx, reserve) })
	}
	beside.Go(func() {
		if a, ok := w.receiver.(attendant); ok {
			if err := a.Attend(ctx); err != nil {
				stop(&eventqueue.UnfitError{Err: err})
			}
		}
	})
	return ctx, func() error {
		stop(nil)
		beside.Wait()
		if reserve != nil {
			reserve.Close()
		}
		var unfit *eventqueue.UnfitError
		if errors.As(context.Cause(ctx), &unfit) {
			return unfit.Err
		}
		return nil
	}, nil
}
