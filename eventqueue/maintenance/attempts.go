package maintenance

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// AttemptStore removes the failed attempts of events that are gone. The relay calls it if its
// RelayStore is one, as pgstore.Store is.
type AttemptStore interface {
	// DeleteAttempts reads no more than limit attempts of events with ids above after, by event, and
	// removes all attempts of those events that are neither queued nor in event_log. It skips rows
	// that another transaction is writing. next is the last event read, 0 when there are no more.
	DeleteAttempts(ctx context.Context, after eventqueue.EventID, limit int) (deleted int, next eventqueue.EventID, err error)
}

// deleteAttemptsPage is how many attempts one statement reads.
const deleteAttemptsPage = 10_000

// DeleteAttempts removes the failed attempts of all events that are gone and returns their number.
// A Relay does it once per hour; call it where no relay runs. A run that succeeds removes none, so
// that it costs nothing.
func DeleteAttempts(ctx context.Context, store AttemptStore) (total int, err error) {
	for after := eventqueue.EventID(0); ; {
		deleted, next, err := deleteAttemptsOf(ctx, store, after)
		if err != nil {
			return total, fmt.Errorf("remove failed attempts: %w", err)
		}
		total += deleted
		if next == 0 {
			return total, nil
		}
		after = next
	}
}

func deleteAttemptsOf(ctx context.Context, store AttemptStore, after eventqueue.EventID) (int, eventqueue.EventID, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return store.DeleteAttempts(ctx, after, deleteAttemptsPage)
}

// deleteAttempts is DeleteAttempts for a relay. After a failure it is tried again the next time.
func deleteAttempts(ctx context.Context, store RelayStore, log *zap.Logger) {
	attempts, ok := store.(AttemptStore)
	if !ok {
		return
	}
	deleted, err := DeleteAttempts(ctx, attempts)
	if deleted > 0 {
		log.Info("removed failed attempts of events that are gone", zap.Int(logkey.Count, deleted))
	}
	if err != nil && ctx.Err() == nil {
		log.Warn("could not remove failed attempts of events that are gone", zap.Error(err))
	}
}
