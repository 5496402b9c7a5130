package worker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/internal/backoff"
	"eventsv2/internal/sqlstate"
)

// Fitness is a store that can check whether its database is fit for a worker; pgstore.Store is one.
type Fitness interface {
	// CheckWorker returns nil when a worker can do its work, an *UnfitError when it cannot and
	// waiting does not help, and any other error when the database cannot be reached at the moment.
	// Each error says what to do.
	CheckWorker(ctx context.Context) error
}

// beginTakes bounds one try to begin.
const beginTakes = 10 * time.Second

// begin waits until the database can be used, and has the worker use its lock timeout. It returns
// an error when waiting does not help, and nil when ctx ends. It logs once why it waits (I17).
func (w *Worker) begin(ctx context.Context) error {
	wait := backoff.New(w.config.Jitter)
	warned := false
	for ctx.Err() == nil {
		err := w.tryToBegin(ctx)
		switch {
		case err == nil:
			if warned {
				w.log.Info("the database can be used: the worker starts")
			}
			return w.config.Validate()
		case ctx.Err() != nil:
			return nil //nolint:nilerr // a stop, and no failure, ends the wait
		case unmendable(err):
			return err
		case !warned:
			w.log.Warn("waiting for the database; the worker starts when it can be used", zap.Error(err))
			warned = true
		}
		wait.Pause(ctx)
	}
	return nil
}

// unmendable reports whether waiting does not help against an error of begin.
func unmendable(err error) bool {
	var differs *locktimeout.Error
	var unfit *eventqueue.UnfitError
	return errors.As(err, &differs) || errors.As(err, &unfit) || sqlstate.Refused(err)
}

func (w *Worker) tryToBegin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beginTakes)
	defer cancel()
	if store, ok := w.store.(Fitness); ok {
		if err := store.CheckWorker(ctx); err != nil {
			return err
		}
	}
	agreed, err := locktimeout.Agree(ctx, w.store, w.ownLockTimeout)
	if err != nil {
		return err
	}
	w.config.LockTimeout = agreed
	w.config.Heartbeat = cmp.Or(w.ownHeartbeat, agreed/4)
	return nil
}
