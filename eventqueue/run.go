package eventqueue

import (
	"context"
	"errors"
)

// Run is one run of an event by its handler.
type Run struct {
	Event

	// Attempt counts the claims of the event, this one included. With ClaimID, the
	// number of this one, it is the fence.
	Attempt int32
	ClaimID ClaimID

	// Snoozes is how often the event has been snoozed in a row, since its last
	// failed attempt.
	Snoozes int

	// Suspect says that a worker died, or lost its lock, while it had the event in hand: its run is kept apart from those of
	// others, so that it fails alone if it is the cause (I15). What runs events together runs it alone.
	Suspect bool

	// Completer completes the event when its handler asks for it. The worker sets it; nil means
	// that this run cannot complete its event.
	Completer Completer
}

// Completer completes a claimed event in a transaction of the handler's own. A worker implements
// it; handlers call the methods of Run.
type Completer interface {
	// CompleteTx does what [Run.CompleteTx] says.
	CompleteTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error

	// CompleteIn does what [Run.CompleteIn] says.
	CompleteIn(ctx context.Context, tx DB) error
}

// CompleteTx completes the event in one transaction with what f writes and
// emits: all of it commits or nothing does. After it has returned nil the
// handler should return nil, as an error is only logged; the event has ended. A second call says so.
//
// It returns ErrLockLost when another worker has claimed the event since, and
// commits nothing then. When the outcome of the commit is unknown it returns
// the database's error; return it: if the transaction did commit, the event is
// gone and is not run again.
//
// f must not keep tx. CompleteTx is for the handler's goroutine only.
func (r *Run) CompleteTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.CompleteTx(ctx, f)
}

// CompleteIn is CompleteTx for a transaction that the caller opened and will
// commit before the handler returns nil; with a rollback the handler returns an
// error. It must be the last statement before the commit: the row of the event
// stays locked until then.
func (r *Run) CompleteIn(ctx context.Context, tx DB) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.CompleteIn(ctx, tx)
}

// errNotCompletable is the error of completing a run that no worker has begun, such as that of a
// synchronous handler of a typed event, of an action of a grid, or one that a test has made.
var errNotCompletable = errors.New("this run cannot complete its event, since no worker has begun it: a synchronous handler, or an action of a grid, is only a part " +
	"of a run; in a test of a handler, begin the run with Begin of package eventstest")
