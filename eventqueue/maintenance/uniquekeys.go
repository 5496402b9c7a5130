package maintenance

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

// UniqueStore removes unique keys that no longer hold. The relay calls it if its RelayStore is one,
// as pgstore.Store is.
type UniqueStore interface {
	// DeleteKeys reads no more than limit keys above after, in the database's order, and removes
	// those whose event has ended at least UniqueFor ago. It skips keys that another transaction is
	// writing. next is the last key read, the zero UniqueKey when there are no more.
	DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (deleted int, next eventqueue.UniqueKey, err error)
}

const (
	// deleteKeysEvery is how often a relay removes keys that no longer hold. They do no harm but
	// take room.
	deleteKeysEvery = time.Hour
	// deleteKeysPage is how many keys one statement reads.
	deleteKeysPage = 10_000
)

// DeleteKeys removes all unique keys that no longer hold and returns their number. Run does it once
// per hour; call it where no relay runs. A key that no longer holds has no effect, removed or not.
func (r *Relay) DeleteKeys(ctx context.Context) (int, error) {
	store, ok := r.store.(UniqueStore)
	if !ok {
		return 0, nil
	}
	total := 0
	for after := (eventqueue.UniqueKey{}); ; {
		deleted, next, err := r.deletePage(ctx, store, after)
		if err != nil {
			return total, fmt.Errorf("remove unique keys: %w", err)
		}
		total += deleted
		if next == (eventqueue.UniqueKey{}) {
			return total, nil
		}
		after = next
	}
}

func (r *Relay) deletePage(ctx context.Context, store UniqueStore, after eventqueue.UniqueKey) (int, eventqueue.UniqueKey, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return store.DeleteKeys(ctx, after, deleteKeysPage)
}

// deleteKeys is DeleteKeys for Run. After a failure it is tried again the next time.
func (r *Relay) deleteKeys(ctx context.Context) {
	deleted, err := r.DeleteKeys(ctx)
	if deleted > 0 {
		r.log.Info("removed expired unique keys", zap.Int(logkey.Count, deleted))
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("could not remove expired unique keys", zap.Error(err))
	}
}
