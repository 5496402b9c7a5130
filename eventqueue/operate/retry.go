package operate

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// MaxRetryEvents is how many events one call of Retry takes.
const MaxRetryEvents = 1000

// Retry moves 1 to MaxRetryEvents failed or cancelled events back into the queue and publishes a
// notification for each. It answers for every id once, in their order. A completed
// event is never run again. It blocks for one statement and one request to the notifier.
//
// Refused rows and errors are as with Cancel. Notifications that could not be published are
// left to the relay.
func (c *Changer) Retry(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
	return c.RetryEdited(ctx, Edit{}, ids...)
}

// RetryEdited is Retry for events that are changed when they are moved: none of them runs with its
// old value. What the limits of the queue do not allow in an emit is refused before anything is
// written. The zero Edit changes nothing; with Of, only events with that content are retried.
func (c *Changer) RetryEdited(ctx context.Context, edit Edit, ids ...eventqueue.EventID) ([]Changed, error) {
	if len(ids) == 0 || len(ids) > MaxRetryEvents {
		return nil, fmt.Errorf("retry %d events: give 1 to %d ids in one call", len(ids), MaxRetryEvents)
	}
	if !edit.isZero() {
		if err := edit.Check(c.queue.Limits()); err != nil {
			return nil, fmt.Errorf("retry %d events: %w", len(ids), err)
		}
	}
	results, err := c.store.Retry(ctx, edit, ids)
	notifyFreed(ctx, c.queue, DoneIDs(results), "retried")
	if err != nil {
		return results, fmt.Errorf("retry %d events: %w", len(ids), err)
	}
	return results, nil
}

// DeleteLogged deletes 1 to MaxRetryEvents failed or cancelled events from event_log: they can no longer be retried.
// It returns those that are gone, and those that the database refuses to delete. It blocks for one statement.
func (c *Changer) DeleteLogged(ctx context.Context, ids ...eventqueue.EventID) ([]Changed, error) {
	if len(ids) == 0 || len(ids) > MaxRetryEvents {
		return nil, fmt.Errorf("delete %d events of event_log: give 1 to %d ids in one call", len(ids), MaxRetryEvents)
	}
	results, err := c.store.DeleteLogged(ctx, ids)
	if err != nil {
		return results, fmt.Errorf("delete %d events of event_log: %w", len(ids), err)
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
		queue.Logger().Warn("could not publish notifications for the events that were "+what+"; the relay will", zap.Int(logkey.Count, len(ids)), zap.Error(err))
	}
}
