package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"eventsv2/internal/refusal"
)

// EmitFunc emits events, all or none, and returns the result of each in the order given.
type EmitFunc func(ctx context.Context, events []NewEvent) ([]Emitted, error)

// EmitMiddleware is called in place of each emit of a Queue and calls next to go on: the next
// middleware, and at last the emit itself, which checks the events and inserts them. It may change
// the events and ctx, return an error, which refuses all of the events before anything is written, and
// measure. It may call next again after an error, in an emit that is not within a transaction.
//
// The events name their canvas, module and modifier. The slice and the maps of attributes, of which
// none is nil, are the middleware's to change; replace a Value, and do not write into it. Events may be
// neither added nor left out: [ParentOf] and the trace context of the ctx that next gets say
// what each inherits. In a transaction what next has returned is not committed yet.
//
// It is called from many goroutines at once, in that of the emitter, so that a panic is the
// emitter's. An error that it returns after next has succeeded does not take the events back, other than
// in a transaction that ends with it.
type EmitMiddleware func(ctx context.Context, events []NewEvent, next EmitFunc) ([]Emitted, error)

// insertFunc checks and inserts events, as one form of emit does.
type insertFunc func(ctx context.Context, events []NewEvent) ([]Inserted, error)

// through has the middleware emit events, at last with insert. It does not change the caller's events. The error
// is a refusal.Emit if the middleware has refused them: insert was not called.
func (q *Queue) through(ctx context.Context, events []NewEvent, insert insertFunc) ([]Inserted, error) {
	if len(events) == 0 {
		return nil, nil
	}
	var inserted []Inserted
	called := false // insert
	next := EmitFunc(func(ctx context.Context, passed []NewEvent) (_ []Emitted, err error) {
		switch {
		case inserted != nil:
			return nil, errors.New("an EmitMiddleware has called next again, which had emitted the events already")
		case len(passed) != len(events):
			return nil, fmt.Errorf("an EmitMiddleware has passed on %d events of %d: it may change them or refuse all of them, and neither add nor leave out any", len(passed), len(events))
		}
		called = true
		inserted, err = insert(ctx, passed)
		return emittedOf(inserted), err
	})
	for _, middleware := range slices.Backward(q.middleware) {
		inner := next
		next = func(ctx context.Context, events []NewEvent) ([]Emitted, error) { return middleware(ctx, events, inner) }
	}
	own := slices.Clone(addressed(events, &q.missing))
	for i := range own {
		if own[i].Attributes = maps.Clone(own[i].Attributes); own[i].Attributes == nil {
			own[i].Attributes = map[string]string{}
		}
	}
	_, err := next(ctx, own)
	if err == nil && inserted == nil {
		err = errors.New("an EmitMiddleware has returned no error and not called next, so nothing is emitted: return an error to refuse events")
	}
	switch {
	case err == nil:
		return inserted, nil
	case !called && ctx.Err() == nil:
		return nil, &refusal.Emit{Err: err}
	default:
		return nil, err
	}
}
