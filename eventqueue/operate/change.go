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

// ChangeResult is the result of a change for one event.
type ChangeResult string

// The results of a change. The first three mean that the event is as requested.
const (
	ChangeDone      ChangeResult = "changed"   // it was cancelled, deleted or edited
	RequeueDone     ChangeResult = "requeued"  // it is due and free, and its notification is pending
	RetryMoved      ChangeResult = "retried"   // it is back in the queue
	RetryQueued     ChangeResult = "queued"    // a retry was refused: it is in the queue already
	ChangeRunning   ChangeResult = "running"   // refused: its lock is valid, and a run that is under way completes
	ChangeEnding    ChangeResult = "ending"    // it runs, and its worker was asked to end the run, after which it is cancelled; only of Cancel
	ChangeBusy      ChangeResult = "busy"      // refused: another transaction is writing its row
	ChangeCompleted ChangeResult = "completed" // refused: it has completed, and stays so
	ChangeFailed    ChangeResult = "failed"    // refused: it is FAILED, in event_log; a retry moves it back
	ChangeCancelled ChangeResult = "cancelled" // it was cancelled before, and is in event_log; a retry moves it back
	ChangeUnknown   ChangeResult = "unknown"   // refused: there is no trace of it
	ChangeRefused   ChangeResult = "refused"   // the database refuses to write its row
	ChangeOutdated  ChangeResult = "outdated"  // refused: its content is not the one that the edit is of
)

// Changed is one event of a change.
type Changed struct {
	ID     eventqueue.EventID
	Result ChangeResult
	// Scope is set for an event that was removed or edited, or is running or ending; otherwise it may be zero.
	Scope eventqueue.Scope
	// LockRemaining is how long the lock of an event stays valid unless it is
	// renewed; only of ChangeRunning and ChangeEnding.
	LockRemaining time.Duration
	// Repeated reports whether the worker had been asked to end the run before, so that nothing was changed. Only of ChangeEnding.
	Repeated bool
	// TakenOver reports whether an expired lock was cleared: its holder can no longer write, and a run
	// that is known to have begun counts as failed. Only of RequeueDone.
	TakenOver bool
	// Rule is the rule that still holds the event back; empty when there is none. Only of
	// RequeueDone.
	Rule RuleType
	// Err is why the database refuses; only of ChangeRefused.
	Err error
}

// Done reports whether the event is as it was asked for because of the change.
func (c Changed) Done() bool {
	return c.Result == ChangeDone || c.Result == RequeueDone || c.Result == RetryMoved
}

// DoneIDs are the events of a change that are as it was asked for.
func DoneIDs(results []Changed) (ids []eventqueue.EventID) {
	for i := range results {
		if results[i].Done() {
			ids = append(ids, results[i].ID)
		}
	}
	return ids
}

// Changer cancels, deletes and edits events that wait, cancels those that run, has those that wait tried now, and moves those that have ended without
// success back into the queue. It is safe for concurrent use, here and in any number of processes, beside running
// workers, and every operation may be repeated (I14).
type Changer struct {
	store ChangeStore
	queue *eventqueue.Queue
}

// NewChanger makes a Changer. The queue notifies the events that may run because of a change.
func NewChanger(store ChangeStore, queue *eventqueue.Queue) (*Changer, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewChanger: store and queue must not be nil")
	}
	return &Changer{store, queue}, nil
}

// MaxChangeEvents is how many events one call of Cancel, Delete or Edit takes.
const MaxChangeEvents = 250

// Cancellation is why events are cancelled, and by whom; both may be left out.
type Cancellation struct {
	// Reason is shown to whoever asks why the event did not run. It may have several lines; its limit
	// is MaxReasonBytes.
	Reason string
	// Actor is the author of the cancellation, as the caller names them; its limit is MaxActorBytes.
	Actor string
}

// Validate names the first field that cannot be stored.
func (c Cancellation) Validate() error { return checkWhy(c.Reason, c.Actor) }

// Cancel ends 1 to MaxChangeEvents events: they do not run, and are in event_log as
// CANCELLED, with their value, from where Retry moves them back. It answers for every id once, in
// their order.
//
// The result of an event whose lock is valid is ChangeEnding: its worker is asked to end the run, whose context ends within five seconds, or,
// where LISTEN does not reach that worker, with its heartbeat, with the cause eventqueue.ErrCancelled. The event ends as CANCELLED when its handler then
// returns an error, and completes if it returns none. Whatever becomes of that run, none follows it: whoever claims the event next ends it
// as CANCELLED. Retry and Edit find it in the queue until then.
//
// An expired lock is no hindrance, and
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

// Delete deletes 1 to MaxChangeEvents events that wait, with their values. It is like Cancel, but without the entry in event_log, and an
// event whose lock is valid is refused: its run completes.
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
