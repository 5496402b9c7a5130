package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// RequeueResult is the result for one event of a requeue.
type RequeueResult string

// The results of a requeue.
const (
	RequeueDone      RequeueResult = "requeued"  // it is due and free, and its notification is pending
	RequeueRunning   RequeueResult = "running"   // refused: its lock is valid, and to try it would run it twice
	RequeueBusy      RequeueResult = "busy"      // refused: another transaction is writing its row
	RequeueCompleted RequeueResult = "completed" // refused: it has completed, and stays so
	RequeueFailed    RequeueResult = "failed"    // refused: it is in event_log; a retry moves it back
	RequeueCancelled RequeueResult = "cancelled" // refused: it was cancelled, and is in event_log; a retry moves it back
	RequeueUnknown   RequeueResult = "unknown"   // refused: there is no trace of it
	RequeueRefused   RequeueResult = "refused"   // the database refuses to write its row
)

// Requeued is one event of a requeue.
type Requeued struct {
	ID     eventqueue.EventID
	Result RequeueResult
	// LockRemaining is for how long the lock of an event is still valid if nobody
	// renews it; only of RequeueRunning.
	LockRemaining time.Duration
	// TakenOver reports whether an expired lock was cleared: its holder can no longer write, and a run
	// that is known to have begun counts as failed. Only of RequeueDone.
	TakenOver bool
	// Rule is the rule that still holds the event back; empty when there is none. Only of
	// RequeueDone.
	Rule RuleType
	// Err is why the database refuses; only of RequeueRefused.
	Err error
}

// RequeueStore is what a Requeuer needs of the database; pgstore.Store is one.
type RequeueStore interface {
	SelectStore

	// Requeue makes events of the queue due, clears locks that have expired, and marks a
	// notification of each as pending; it answers for every id once, in order. It reads and writes
	// each event under a lock of its row, by the database's clock and lock timeout. It never changes
	// attempts. Refused rows and errors are as with a ChangeStore.
	Requeue(ctx context.Context, ids []eventqueue.EventID) ([]Requeued, error)
}

// Requeuer has waiting events tried now. It is safe for concurrent use, and every operation may be
// repeated (I14).
type Requeuer struct {
	store RequeueStore
	queue *eventqueue.Queue
}

// NewRequeuer makes a Requeuer. The queue publishes the notifications.
func NewRequeuer(store RequeueStore, queue *eventqueue.Queue) (*Requeuer, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewRequeuer: store and queue must not be nil")
	}
	return &Requeuer{store, queue}, nil
}

// MaxRequeueEvents is how many events one call of Requeue takes.
const MaxRequeueEvents = 1000

// Requeue has 1 to MaxRequeueEvents events tried now: their delays end, locks that
// have expired are cleared, and a notification is published for each. It answers for every
// id once, in their order.
//
// An event whose lock is valid is refused, since to try it would run it twice; so are those that
// have ended. An expired lock is taken over as by a claim: the holder's writes are refused from
// then on (I5), and a run that is known to have begun counts as a failed one; a claim that never
// led to a run uses no attempt. If it was the last run that the event was allowed, the event gets
// one more. Rules still hold their events back.
//
// Refused rows and errors are as with Changer.Cancel.
func (r *Requeuer) Requeue(ctx context.Context, ids ...eventqueue.EventID) ([]Requeued, error) {
	if len(ids) == 0 || len(ids) > MaxRequeueEvents {
		return nil, fmt.Errorf("requeue %d events: give 1 to %d ids in one call", len(ids), MaxRequeueEvents)
	}
	results, err := r.store.Requeue(ctx, ids)
	var free []eventqueue.EventID
	for _, result := range results {
		if result.Result == RequeueDone && result.Rule == "" {
			free = append(free, result.ID)
		}
	}
	notifyFreed(ctx, r.queue, free, "requeued")
	if err != nil {
		return results, fmt.Errorf("requeue %d events: %w", len(ids), err)
	}
	return results, nil
}
