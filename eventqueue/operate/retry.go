package operate

import (
	"context"
	"errors"
	"fmt"

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
	RetryOutdated  RetryResult = "outdated"  // refused: its content is not the one that the edit is of
	RetryRefused   RetryResult = "refused"   // the database refuses to write its row
)

// Retried is one event of a retry.
type Retried struct {
	ID     eventqueue.EventID
	Result RetryResult
	// Err is why the database refuses; only of RetryRefused.
	Err error
}

// RetryStore is what a Retrier needs of the database; pgstore.Store is one.
type RetryStore interface {
	// Retry moves failed and cancelled events from event_log back into the queue, changed by the edit,
	// which may be the zero Edit: under the same id, due now or when the edit says, with no retry used
	// and a notification pending. It answers for every id once, in order. It never changes attempts.
	// Refused rows and errors are as with a ChangeStore.
	Retry(ctx context.Context, edit Edit, ids []eventqueue.EventID) ([]Retried, error)

	// DeleteLogged deletes failed and cancelled events from event_log and returns which those were, also
	// with an error. A *refusal.Error has those that the database refuses to delete.
	DeleteLogged(ctx context.Context, ids []eventqueue.EventID) ([]eventqueue.EventID, error)

	// LastLogged is the highest id in event_log, 0 when it is empty.
	LastLogged(ctx context.Context) (eventqueue.EventID, error)

	// SelectLogged reads no more than limit events of event_log, by id, that are above after and not
	// above last, and returns those that a valid filter selects. next is the last one that it read, 0
	// when there are no more. It locks nothing.
	SelectLogged(ctx context.Context, filter EventFilter, after, last eventqueue.EventID, limit int) (ids []eventqueue.EventID, next eventqueue.EventID, err error)
}

// Retrier moves failed and cancelled events back into the queue. It is safe for concurrent use, and every
// operation may be repeated (I14).
type Retrier struct {
	store RetryStore
	queue *eventqueue.Queue
}

// NewRetrier makes a Retrier. The queue publishes the notifications.
func NewRetrier(store RetryStore, queue *eventqueue.Queue) (*Retrier, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewRetrier: store and queue must not be nil")
	}
	return &Retrier{store, queue}, nil
}

// MaxRetryEvents is how many events one call of Retry takes.
const MaxRetryEvents = 1000

// Retry moves 1 to MaxRetryEvents failed or cancelled events back into the queue and publishes a
// notification for each. It answers for every id once, in their order. A completed
// event is never run again. It blocks for one statement and one request to the notifier.
//
// Refused rows and errors are as with Changer.Cancel. Notifications that could not be published are
// left to the relay.
func (r *Retrier) Retry(ctx context.Context, ids ...eventqueue.EventID) ([]Retried, error) {
	return r.retry(ctx, Edit{}, ids)
}

// RetryEdited is Retry for events that are changed when they are moved: none of them runs with its
// old value. What the limits of the queue do not allow in an emit is refused before anything is
// written. An edit that only has Of changes nothing, and retries events with that content only.
func (r *Retrier) RetryEdited(ctx context.Context, edit Edit, ids ...eventqueue.EventID) ([]Retried, error) {
	if edit.Of == nil || !edit.isZero() {
		if err := edit.Check(r.queue.Limits()); err != nil {
			return nil, fmt.Errorf("retry %d events: %w", len(ids), err)
		}
	}
	return r.retry(ctx, edit, ids)
}

func (r *Retrier) retry(ctx context.Context, edit Edit, ids []eventqueue.EventID) ([]Retried, error) {
	if len(ids) == 0 || len(ids) > MaxRetryEvents {
		return nil, fmt.Errorf("retry %d events: give 1 to %d ids in one call", len(ids), MaxRetryEvents)
	}
	results, err := r.store.Retry(ctx, edit, ids)
	var moved []eventqueue.EventID
	for _, result := range results {
		if result.Result == RetryMoved {
			moved = append(moved, result.ID)
		}
	}
	notifyFreed(ctx, r.queue, moved, "retried")
	if err != nil {
		return results, fmt.Errorf("retry %d events: %w", len(ids), err)
	}
	return results, nil
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
