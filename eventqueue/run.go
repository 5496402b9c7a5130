package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue/machine"
)

// Run is one run of an event by its handler.
type Run struct {
	Event

	// Attempt counts the claims of the event, this one included. It is the
	// fence token.
	Attempt int32

	worker *Worker
	unique bool // see Found.Unique
	inLine bool // see Found.InLine
	// completed: the end is committed. completing: it was written in a
	// transaction of the handler's, which may have committed. Both are read by
	// the finisher and the heartbeat while an abandoned handler may still run.
	completed  atomic.Bool
	completing atomic.Bool
}

// CompleteTx completes the event in one transaction with what f writes and
// emits: all of it commits or nothing does. After it has returned nil the
// handler should return nil; the event has ended.
//
// It returns ErrLockLost when another worker has claimed the event since, and
// commits nothing then. When the outcome of the commit is unknown it returns
// the database's error; return it: if the transaction did commit, the event is
// gone and is not run again.
//
// f must not keep tx. CompleteTx is for the handler's goroutine only.
func (r *Run) CompleteTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	if r.worker == nil {
		return errNotItsEnd
	}
	err := r.worker.queue.InTx(ctx, func(ctx context.Context, tx *Tx) error {
		if err := f(ctx, tx); err != nil {
			return err
		}
		return r.complete(ctx, tx.DB)
	})
	if err != nil {
		return err
	}
	r.completed.Store(true)
	return nil
}

// CompleteIn is CompleteTx for a transaction that the caller opened and will
// commit before the handler returns nil; with a rollback the handler returns an
// error. It must be the last statement before the commit: the row of the event
// stays locked until then.
func (r *Run) CompleteIn(ctx context.Context, tx DB) error {
	if r.worker == nil {
		return errNotItsEnd
	}
	if err := r.complete(ctx, tx); err != nil {
		return err
	}
	r.completing.Store(true)
	return nil
}

// errNotItsEnd is the error of completing a run that no worker has begun, as that
// of a synchronous handler of a typed event, or of an action of a grid.
var errNotItsEnd = errors.New("this run does not end its event: a synchronous handler, or an action of a grid, cannot complete the event that it is a part of")

// busyWait is how long complete waits when a heartbeat is writing the row.
const busyWait = 5 * time.Millisecond

func (r *Run) complete(ctx context.Context, db DB) error {
	ends := []End{{Claim: r.claim(), Label: machine.ExecutesToCompletion, Unique: r.unique, InLine: r.inLine}}
	for {
		written, err := r.worker.store.Finish(ctx, db, ends, r.worker.config.KeepHistory)
		switch {
		case err != nil:
			return fmt.Errorf("complete event %s: %w", r.ID, err)
		case len(written.Done) == 1:
			return nil
		case len(written.Lost) == 1:
			return fmt.Errorf("complete event %s: %w", r.ID, ErrLockLost)
		}
		select {
		case <-time.After(busyWait):
		case <-ctx.Done():
			return fmt.Errorf("complete event %s: %w", r.ID, context.Cause(ctx))
		}
	}
}

func (r *Run) claim() Claim { return Claim{Event: r.ID, Attempt: r.Attempt} }

// verdictOf tells what an error of a handler means. stopping says that its
// context had ended because the worker stops.
func verdictOf(err error, stopping bool) machine.Label {
	if err == nil {
		return machine.ExecutesToCompletion
	}
	switch _, snoozed := SnoozeOf(err); {
	case IsPermanent(err):
		return machine.FailedForGood
	case snoozed:
		return machine.Snoozed
	case stopping:
		return machine.Released
	default:
		return machine.Exception
	}
}
