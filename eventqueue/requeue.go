package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// RequeueResult says what became of an event that was to be tried now.
type RequeueResult string

// The results of a requeue.
const (
	RequeueDone      RequeueResult = "requeued"  // it is due and free, and owed a notification
	RequeueRunning   RequeueResult = "running"   // refused: its lock is valid, and to try it would run it twice
	RequeueBusy      RequeueResult = "busy"      // refused: somebody is writing its row
	RequeueCompleted RequeueResult = "completed" // refused: it has completed, and stays so
	RequeueFailed    RequeueResult = "failed"    // refused: it is in event_log; a retry moves it back
	RequeueUnknown   RequeueResult = "unknown"   // refused: there is no trace of it
)

// Requeued is one event that was to be tried now.
type Requeued struct {
	ID     EventID
	Result RequeueResult
	// LockRemaining is for how long the lock of an event is still valid if nobody
	// renews it; only of RequeueRunning.
	LockRemaining time.Duration
	// TakenOver says that an expired lock was cleared: who held it can no longer
	// write, and the run counts as failed. Only of RequeueDone.
	TakenOver bool
	// Rule holds the event back all the same; empty when nothing does. Only of
	// RequeueDone.
	Rule RuleType
}

// RequeueStore is what a Requeuer needs of the database; pgstore.Store is one.
type RequeueStore interface {
	// Requeue makes events of the queue due, clears locks that have expired, and
	// owes each a notification; it answers for every id once, in order. What it
	// finds of an event and what it writes is one decision, under a lock of its row
	// and by the database's clock. It never changes attempts.
	Requeue(ctx context.Context, ids []EventID, lockTimeout time.Duration) ([]Requeued, error)
}

// Requeuer has events tried now that wait for longer than somebody wants to. It is
// safe for concurrent use, and every operation may be repeated (I14).
type Requeuer struct {
	store       RequeueStore
	queue       *Queue
	lockTimeout time.Duration
}

// NewRequeuer makes a Requeuer. The queue publishes the notifications. lockTimeout
// is the workers', and must be: it decides what runs.
func NewRequeuer(store RequeueStore, queue *Queue, lockTimeout time.Duration) (*Requeuer, error) {
	if store == nil || queue == nil {
		return nil, errors.New("eventqueue.NewRequeuer: store and queue must not be nil")
	}
	if lockTimeout <= 0 {
		return nil, fmt.Errorf("eventqueue.NewRequeuer: lockTimeout is %s: it must be that of the workers, which is positive", lockTimeout)
	}
	return &Requeuer{store, queue, lockTimeout}, nil
}

// MaxRequeueEvents is how many events one call of Requeue takes.
const MaxRequeueEvents = 1000

// Requeue has 1 to MaxRequeueEvents events tried now: their delays end, locks that
// have expired are cleared, and the doorbell rings for each. It answers for every
// id once, in their order.
//
// An event whose lock is valid is refused, since to try it would run it twice; so
// are those that have ended. What is cleared of a lock is taken from its holder
// as a claim would: the holder's writes are refused from then on (I5), and the run
// counts as a failed one. If it was the last that the event had, this is one more.
// A rule goes on holding its events back.
//
// An error means that nothing was written, or that nobody knows; the call may be
// repeated.
func (r *Requeuer) Requeue(ctx context.Context, ids ...EventID) ([]Requeued, error) {
	if len(ids) == 0 || len(ids) > MaxRequeueEvents {
		return nil, fmt.Errorf("requeue %d events: give 1 to %d ids in one call", len(ids), MaxRequeueEvents)
	}
	results, err := r.store.Requeue(ctx, ids, r.lockTimeout)
	if err != nil {
		return nil, fmt.Errorf("requeue %d events: %w", len(ids), err)
	}
	pending := &Pending{queue: r.queue}
	for _, result := range results {
		if result.Result == RequeueDone && result.Rule == "" {
			pending.IDs = append(pending.IDs, result.ID)
		}
	}
	if len(pending.IDs) == 0 {
		return results, nil
	}
	// The events are free, come what may: this only costs time.
	if err := pending.Notify(ctx); err != nil {
		r.queue.publisher.log.Warn("could not notify the events that were requeued; the relay will", zap.Int(logCount, len(pending.IDs)), zap.Error(err))
	}
	return results, nil
}
