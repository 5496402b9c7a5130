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

	// Suspect says that a worker died, or lost its lock, with the event in hand: its run is kept apart from those of others (I15), and
	// what runs events together runs it alone.
	Suspect bool

	// Completer completes the event when its handler asks for it. The worker sets it; nil means
	// that this run cannot complete its event.
	Completer Completer
}

// Completer has what a handler may do with its run: the methods of Run, which a handler calls, say what. A worker implements it.
type Completer interface {
	CompleteTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error
	CompleteIn(ctx context.Context, tx DB) error
	SetResult(result any) error
	Progress(fraction float64, note string) error
}

// CompleteTx completes the event in one transaction with what f writes and emits: all of it commits or nothing does. After it
// has returned nil the handler should return nil, as an error is only logged; the event has ended. A second call says so.
//
// It returns ErrLockLost when another worker has claimed the event since, and commits nothing then. When the outcome of the
// commit is unknown it returns the database's error; return it: if the transaction did commit, the event is gone and is not run again.
//
// f must not keep tx. CompleteTx is for the handler's goroutine only.
func (r *Run) CompleteTx(ctx context.Context, f func(ctx context.Context, tx *Tx) error) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.CompleteTx(ctx, f)
}

// CompleteIn is CompleteTx for a transaction that the caller opened and will commit before the handler returns nil; with a rollback the
// handler returns an error. It must be the last statement before the commit: the row of the event stays locked until then.
func (r *Run) CompleteIn(ctx context.Context, tx DB) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.CompleteIn(ctx, tx)
}

// SetResult gives the event a result: what encodes as JSON of at most 64 KiB. It is kept if this run completes the event, where
// the history keeps completed events; see docs/results.md. The last call counts, and the error says what is wrong with the result.
// It is for the handler's goroutine, before CompleteTx and CompleteIn.
func (r *Run) SetResult(result any) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.SetResult(result)
}

// Progress shows people how far the run is: a fraction of 0 to 1, and a sentence of at most 200 bytes, or "". It blocks for nothing: the
// worker writes what was reported last, every two seconds at most. It is safe for concurrent use; the error is about the arguments.
func (r *Run) Progress(fraction float64, note string) error {
	if r.Completer == nil {
		return errNotCompletable
	}
	return r.Completer.Progress(fraction, note)
}

// errNotCompletable is the error of a run that no worker has begun.
var errNotCompletable = errors.New("this run cannot complete its event, nor have a result or a progress, since no worker has begun it: a synchronous handler, or an action of a grid, is only a part " +
	"of a run; in a test of a handler, begin the run with Begin of package eventstest")
