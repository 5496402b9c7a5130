package maintenance

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// WorkerStore removes the rows of workers that have ended. The relay calls it if its RelayStore is
// one, as pgstore.Store is.
type WorkerStore interface {
	// DeleteWorkers removes the workers that stopped, or were missed, longer ago than olderThan, and
	// records of those that are missed for the first time that they are.
	DeleteWorkers(ctx context.Context, olderThan time.Duration) (deleted int, err error)
}

// workersRetained is how long a worker that has ended is shown to operators.
const workersRetained = 24 * time.Hour

// deleteWorkers removes workers that have ended. After a failure it is tried again the next time.
func deleteWorkers(ctx context.Context, store RelayStore, log *zap.Logger) {
	workers, ok := store.(WorkerStore)
	if !ok {
		return
	}
	short, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	switch deleted, err := workers.DeleteWorkers(short, workersRetained); {
	case err != nil && ctx.Err() == nil:
		log.Warn("could not remove workers that have ended", zap.Error(err))
	case deleted > 0:
		log.Info("removed workers that have ended", zap.Int(logkey.Count, deleted))
	}
}
