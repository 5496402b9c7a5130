package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
	"eventsv2/internal/refusal"
)

// ChangeResult is the result for one event of a cancel, a delete or an edit.
type ChangeResult string

// The results of a change.
const (
	ChangeDone      ChangeResult = "changed"   // it is as it was asked for
	ChangeRunning   ChangeResult = "running"   // refused: its lock is valid, and a run that is under way completes
	ChangeBusy      ChangeResult = "busy"      // refused: another transaction is writing its row
	ChangeCompleted ChangeResult = "completed" // refused: it has completed, and stays so
	ChangeFailed    ChangeResult = "failed"    // refused: it is FAILED, in event_log
	ChangeCancelled ChangeResult = "cancelled" // it was cancelled before, and is in event_log
	ChangeUnknown   ChangeResult = "unknown"   // refused: there is no trace of it
	ChangeRefused   ChangeResult = "refused"   // the database refuses to write its row
	ChangeOutdated  ChangeResult = "outdated"  // refused: its content is not the one that the edit is of
)

// Changed is one event of a change.
type Changed struct {
	ID     eventqueue.EventID
	Result ChangeResult
	// Scope is that of an event that was changed, or is running; otherwise it may be zero.
	Scope eventqueue.Scope
	// LockRemaining is for how long the lock of an event is still valid if nobody
	// renews it; only of ChangeRunning.
	LockRemaining time.Duration
	// Err is why the database refuses; only of ChangeRefused.
	Err error
}

// ChangeStore is what a Changer needs of the database; pgstore.Store is one.
//
// When the database refuses to write the row of an event, that costs no other event anything: the
// result of that event is ChangeRefused (I15). The results beside an error are those of the events
// that were changed before it occurred.
type ChangeStore interface {
	SelectStore

	// Remove takes events that no worker runs out of the queue. With a cancellation they go to event_log
	// as CANCELLED, in the same statement. It answers for every id once, in order. It reads and writes
	// each event under a lock of its row, by the database's clock; a lock that has expired is none,
	// and its holder can no longer write (I5). A unique key is released as by a completion, and
	// ordering groups advance: to the events that it returns. A *refusal.Error says which of these
	// the database refuses to write, as with worker.Store's Complete.
	Remove(ctx context.Context, ids []eventqueue.EventID, cancellation *Cancellation) (results []Changed, advanced []eventqueue.Event, err error)

	// Edit changes events that no worker runs, as Remove decides that, and clears locks that have
	// expired, as RequeueStore does. It answers for every id once, in order. It never changes
	// attempts. A notification of an event with a new time is pending.
	Edit(ctx context.Context, edit Edit, ids []eventqueue.EventID) ([]Changed, error)
}

// Changer cancels, deletes and edits events that wait. It is safe for concurrent use, here and in any
// number of processes, beside running workers, and every operation may be repeated (I14).
type Changer struct {
	store ChangeStore
	queue *eventqueue.Queue
}

// NewChanger makes a Changer. The queue notifies the events that may run when one before them is
// gone.
func NewChanger(store ChangeStore, queue *eventqueue.Queue) (*Changer, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewChanger: store and queue must not be nil")
	}
	return &Changer{store, queue}, nil
}

// MaxChangeEvents is how many events one call of a Changer takes.
const MaxChangeEvents = 250

// Cancellation is why events are cancelled, and by whom; both may be left out.
type Cancellation struct {
	// Reason is shown to whoever asks why the event did not run. It may have several lines; its limit
	// is MaxReasonBytes.
	Reason string
	// Actor is who cancels, as the caller names them; its limit is MaxActorBytes.
	Actor string
}

// Validate names the first field that cannot be stored.
func (c Cancellation) Validate() error { return checkWhy(c.Reason, c.Actor) }

// Cancel ends 1 to MaxChangeEvents events that wait: they do not run, and are in event_log as
// CANCELLED, with their value, from where Retry moves them back. It answers for every id once, in
// their order.
//
// An event whose lock is valid is refused: its run completes. An expired lock is no hindrance, and
// its holder's writes are refused from then on (I5). The unique key of an event is released as if
// the event had completed, and the next event of its ordering group may run. It blocks for two
// statements and one request to the notifier.
//
// An event whose row the database refuses to write, because of a trigger for example, has the result
// ChangeRefused, and costs the others nothing. With an error, those are changed whose results say so,
// and of the others it is not known; the call may be repeated.
func (c *Changer) Cancel(ctx context.Context, cancellation Cancellation, ids ...eventqueue.EventID) ([]Changed, error) {
	return c.remove(ctx, "cancel", ids, &cancellation)
}

// Delete is Cancel without the entry in event_log: the events are gone with their values.
func (c *Changer) Delete(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
	return c.remove(ctx, "delete", ids, nil)
}

func (c *Changer) remove(ctx context.Context, verb string, ids []eventqueue.EventID, cancellation *Cancellation) ([]Changed, error) {
	if len(ids) == 0 || len(ids) > MaxChangeEvents {
		return nil, fmt.Errorf("%s %d events: give 1 to %d ids in one call", verb, len(ids), MaxChangeEvents)
	}
	if cancellation != nil {
		if err := cancellation.Validate(); err != nil {
			return nil, fmt.Errorf("%s %d events: %w", verb, len(ids), err)
		}
	}
	results, advanced, err := c.store.Remove(ctx, ids, cancellation)
	if cancellation != nil {
		minutes.Of(c.queue).CountCancelled(changedScopes(results))
	}
	c.queue.NotifyEvents(ctx, advanced)
	if err = refusal.Report(c.queue.Logger(), err); err != nil {
		return results, fmt.Errorf("%s %d events: %w", verb, len(ids), err)
	}
	return results, nil
}

// changedScopes yields the scope of each event that was changed.
func changedScopes(results []Changed) iter.Seq[eventqueue.Scope] {
	return func(yield func(eventqueue.Scope) bool) {
		for i := range results {
			if results[i].Result == ChangeDone && !yield(results[i].Scope) {
				return
			}
		}
	}
}
