package eventqueue

import "context"

// UniqueKey is a NewEvent.UniqueKey on its canvas.
type UniqueKey struct {
	Canvas CanvasID
	Key    string
}

// Emitted is the result of emitting one event.
type Emitted struct {
	ID EventID

	// New reports whether the event was inserted; otherwise ID is the event that has its
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
