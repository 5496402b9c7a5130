package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
)

// Standby is a Store that can lend a worker a connection beside its others;
// pgstore.Store is one.
type Standby interface {
	Store

	// Reserve returns a connection that is opened when it is first used.
	Reserve() Reserve
}

// Reserve is a connection of a worker's own. It is safe for concurrent use.
type Reserve interface {
	// Renew is that of Store, on this connection.
	Renew(ctx context.Context, claims []Claim) (WriteResult, error)

	// Behind returns a Receiver that passes everything on to a notifier and finds due events in the
	// database while that is down, and for a while after another program has reported on this
	// connection that it could not publish. Otherwise it sends the database nothing.
	Behind(primary eventqueue.RemoteReceiver, lockTimeout time.Duration, log *zap.Logger) (eventqueue.Receiver, error)

	// Close closes the connection.
	Close()
}

// NotifierError returns why notifications cannot be pulled, so that due events are found in the
// database, or why they could not be acknowledged or requeued for the last ten seconds or more, so
// that they come again. It is nil while the notifier works, and before Run; a worker without the
// fallback does not know whether notifications can be pulled. It may be called at any time.
func (w *Worker) NotifierError() error {
	if receiver := w.ailing.Load(); receiver != nil {
		if err := (*receiver).Failure(); err != nil {
			return err
		}
	}
	return w.answering.failure()
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
	if able && (w.config.Heartbeats == nil || falls) {
		reserve = standby.Reserve()
		w.beats = reserve
	}
	if w.config.Heartbeats != nil {
		w.beats = w.config.Heartbeats
	}
	if reserve != nil && falls {
		if w.receiver, err = reserve.Behind(primary, w.config.LockTimeout, w.log); err != nil {
			reserve.Close()
			return nil, nil, fmt.Errorf("worker.Worker: %w", err)
		}
	}
	if receiver, ok := w.receiver.(ailing); ok {
		w.ailing.Store(&receiver)
	}
	ctx, stop := context.WithCancelCause(ctx)
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		if a, ok := w.receiver.(attendant); ok {
			if err := a.Attend(ctx); err != nil {
				stop(&eventqueue.UnfitError{Err: err})
			}
		}
	}()
	return ctx, func() error {
		stop(nil)
		<-attended
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
