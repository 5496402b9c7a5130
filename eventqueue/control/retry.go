package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// RetryResult is the result for one event of a retry.
type RetryResult string

// The results of a retry.
const (
	RetryMoved     RetryResult = "retried"   // it is back in the queue
	RetryQueued    RetryResult = "queued"    // it is in the queue already
	RetryCompleted RetryResult = "completed" // it has completed, and stays so
	RetryUnknown   RetryResult = "unknown"   // there is no trace of it
)

// Retried is one event of a retry.
type Retried struct {
	ID     eventqueue.EventID
	Result RetryResult
}

// RetryStore is what a Retrier needs of the database; pgstore.Store is one.
type RetryStore interface {
	// Retry moves failed events from event_log back into the queue: under the same id,
	// due now, with no retry used and a notification pending. It answers for every id
	// once, in order. It never changes attempts.
	Retry(ctx context.Context, ids []eventqueue.EventID) ([]Retried, error)

	// LastLogged is the highest id in event_log, 0 when it is empty.
	LastLogged(ctx context.Context) (eventqueue.EventID, error)

	// FailedIDs returns at most limit ids of failed events of a scope, in order, that
	// are above after and not above last.
	FailedIDs(ctx context.Context, scope eventqueue.Scope, after, last eventqueue.EventID, limit int) ([]eventqueue.EventID, error)
}

// Retrier moves failed events back into the queue. It is safe for concurrent use, and every
// operation may be repeated (I14).
type Retrier struct {
	store RetryStore
	queue *eventqueue.Queue
}

// NewRetrier makes a Retrier. The queue publishes the notifications.
func NewRetrier(store RetryStore, queue *eventqueue.Queue) (*Retrier, error) {
	if store == nil || queue == nil {
		return nil, errors.New("control.NewRetrier: store and queue must not be nil")
	}
	return &Retrier{store, queue}, nil
}

// MaxRetryEvents is how many events one call of Retry takes.
const MaxRetryEvents = 1000

// Retry moves 1 to MaxRetryEvents failed events back into the queue and publishes a
// notification for each. It answers for every id once, in their order. A completed
// event is never run again. It blocks for one statement and one request to the notifier.
//
// An error means that nothing was moved, or that it is not known; the call may be repeated. Without
// an error, notifications that could not be published are left to the relay.
func (r *Retrier) Retry(ctx context.Context, ids ...eventqueue.EventID) ([]Retried, error) {
	if len(ids) == 0 || len(ids) > MaxRetryEvents {
		return nil, fmt.Errorf("retry %d events: give 1 to %d ids in one call", len(ids), MaxRetryEvents)
	}
	results, err := r.store.Retry(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("retry %d events: %w", len(ids), err)
	}
	var moved []eventqueue.EventID
	for _, result := range results {
		if result.Result == RetryMoved {
			moved = append(moved, result.ID)
		}
	}
	notifyFreed(ctx, r.queue, moved, "retried")
	return results, nil
}

// RetryAll moves the events of a scope back into the queue that had failed when it began,
// MaxRetryEvents in a statement, and returns how many those were, also with an error. When ctx
// ends, it stops between two statements.
func (r *Retrier) RetryAll(ctx context.Context, scope eventqueue.Scope) (moved int, err error) {
	if err := scope.Validate(); err != nil {
		return 0, fmt.Errorf("retry all: %w", err)
	}
	last, err := r.store.LastLogged(ctx)
	if err != nil {
		return 0, fmt.Errorf("retry all of %s: %w", scope, err)
	}
	for after := eventqueue.EventID(0); ; {
		ids, err := r.store.FailedIDs(ctx, scope, after, last, MaxRetryEvents)
		if err != nil {
			return moved, fmt.Errorf("retry all of %s: %w", scope, err)
		}
		if len(ids) == 0 {
			return moved, nil
		}
		results, err := r.retryToTheEnd(ctx, ids)
		if err != nil {
			return moved, fmt.Errorf("retry all of %s: %w", scope, err)
		}
		for _, result := range results {
			if result.Result == RetryMoved {
				moved++
			}
		}
		after = ids[len(ids)-1]
	}
}

// retryTimeout bounds one statement of RetryAll.
const retryTimeout = 2 * time.Minute

// retryToTheEnd is not interrupted when ctx ends, so that the reported count is exact.
func (r *Retrier) retryToTheEnd(ctx context.Context, ids []eventqueue.EventID) ([]Retried, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryTimeout)
	defer cancel()
	return r.Retry(ctx, ids...)
}

// notifyFreed publishes the notifications of events that a call has made due. They are due in any
// case: a failure only costs time.
func notifyFreed(ctx context.Context, queue *eventqueue.Queue, ids []eventqueue.EventID, what string) {
	if len(ids) == 0 {
		return
	}
	if err := queue.NotifyPending(ctx, ids); err != nil {
		queue.Logger().Warn("could not notify the events that were "+what+"; the relay will", zap.Int(logkey.Count, len(ids)), zap.Error(err))
	}
}
