package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxUniqueFor is the longest time that a key may hold after the end of its event.
const MaxUniqueFor = 366 * 24 * time.Hour

// UniqueKey is a NewEvent.UniqueKey on its canvas.
type UniqueKey struct {
	Canvas CanvasID
	Key    string
}

// Emitted is the result of emitting one event.
type Emitted struct {
	ID EventID

	// New says that the event was inserted; otherwise ID is the event that has its
	// UniqueKey, from an earlier emit or from earlier in the same one.
	New bool
}

// EmitUnique is EmitMany that also reports which events are new. A UniqueKey has the same effect in
// every form of emit, and events without one are always new.
func (q *Queue) EmitUnique(ctx context.Context, events ...NewEvent) ([]Emitted, error) {
	inserted, err := q.emitMany(ctx, events)
	return emittedOf(inserted), err
}

// EmitUnique is Emit that also reports which events are new.
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
		return "unique_key", CheckName(e.UniqueKey)
	case e.UniqueFor != 0:
		return "unique_key", errors.New("is missing: unique_for goes with it")
	default:
		return "", nil
	}
}
