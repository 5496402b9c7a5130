package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// MaxUniqueFor is the longest time that a key may hold after the end of its event.
const MaxUniqueFor = 366 * 24 * time.Hour

// UniqueKey is a NewEvent.UniqueKey on its canvas.
type UniqueKey struct {
	Canvas CanvasID
	Key    string
}

// Emitted is what became of an event that was emitted.
type Emitted struct {
	ID EventID

	// New says that the event was inserted; otherwise ID is the event that has its
	// UniqueKey, from an earlier emit or from earlier in the same one.
	New bool
}

// EmitUnique is EmitMany for those who want to know which events are new. It is
// no different otherwise: a UniqueKey counts in every emit, and events without one
// are always new.
func (q *Queue) EmitUnique(ctx context.Context, events ...NewEvent) ([]Emitted, error) {
	inserted, err := q.emitMany(ctx, events)
	return emittedOf(inserted), err
}

// EmitUnique is Emit for those who want to know which events are new.
func (tx *Tx) EmitUnique(ctx context.Context, events ...NewEvent) ([]Emitted, error) {
	inserted, err := tx.emit(ctx, events)
	return emittedOf(inserted), err
}

func emittedOf(inserted []Inserted) []Emitted {
	emitted := make([]Emitted, len(inserted))
	for i, row := range inserted {
		emitted[i] = Emitted{ID: row.ID, New: !row.Repeat}
	}
	return emitted
}

func (e NewEvent) unique() bool { return e.UniqueKey != "" }

func checkUnique(e *NewEvent) (field string, err error) {
	switch {
	case e.UniqueFor < 0:
		return "unique_for", fmt.Errorf("%s is negative: use 0 for not beyond the end of the event", e.UniqueFor)
	case e.UniqueFor > MaxUniqueFor:
		return "unique_for", fmt.Errorf("%s is more than the limit of %s", e.UniqueFor, MaxUniqueFor)
	case e.unique():
		return "unique_key", checkName(e.UniqueKey)
	case e.UniqueFor != 0:
		return "unique_key", errors.New("is missing: unique_for goes with it")
	default:
		return "", nil
	}
}

// UniqueStore removes the keys that hold no longer; the relay asks its RelayStore
// to do so if that is one too, as pgstore.Store is.
type UniqueStore interface {
	// ForgetKeys looks at no more than limit keys above after, in the database's
	// order, and removes those whose event has ended at least UniqueFor ago. It
	// skips keys that somebody is writing. next is the last key looked at, the
	// zero UniqueKey when there are no more.
	ForgetKeys(ctx context.Context, after UniqueKey, limit int) (forgotten int, next UniqueKey, err error)
}

const (
	// forgetEvery is how often a relay removes keys that hold no longer. They do no
	// harm but take room.
	forgetEvery = time.Hour
	// forgetPage is how many keys one statement looks at.
	forgetPage = 10_000
)

// ForgetKeys removes all unique keys that hold no longer and returns their number.
// Run does it once per hour; call it where no relay runs. A key that holds no longer
// is as good as none, removed or not.
func (r *Relay) ForgetKeys(ctx context.Context) (int, error) {
	store, ok := r.store.(UniqueStore)
	if !ok {
		return 0, nil
	}
	total := 0
	for after := (UniqueKey{}); ; {
		forgotten, next, err := r.forgetPage(ctx, store, after)
		if err != nil {
			return total, fmt.Errorf("remove unique keys: %w", err)
		}
		total += forgotten
		if next == (UniqueKey{}) {
			return total, nil
		}
		after = next
	}
}

func (r *Relay) forgetPage(ctx context.Context, store UniqueStore, after UniqueKey) (int, UniqueKey, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return store.ForgetKeys(ctx, after, forgetPage)
}

// forget is ForgetKeys for Run. What it could not do waits for the next time.
func (r *Relay) forget(ctx context.Context) {
	forgotten, err := r.ForgetKeys(ctx)
	if forgotten > 0 {
		r.log.Info("removed unique keys that hold no longer", zap.Int(logCount, forgotten))
	}
	if err != nil && ctx.Err() == nil {
		r.log.Warn("could not remove unique keys that hold no longer", zap.Error(err))
	}
}
