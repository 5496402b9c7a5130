package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"eventsv2/eventqueue"
)

// How the demo emits: a few events one by one, a few in a transaction, and the
// rest in batches.
const (
	emitSingly  = 3
	emitInTx    = 5
	emitAtOnce  = 200
	emitMinimum = 2 * (emitSingly + emitInTx) // fewer go out in batches only
)

// emitter emits events and records them. It is not safe for concurrent use.
type emitter struct {
	queue   *eventqueue.Queue
	emitted map[eventqueue.EventID]digest
}

func newEmitter(queue *eventqueue.Queue) *emitter {
	return &emitter{queue: queue, emitted: make(map[eventqueue.EventID]digest)}
}

// emit emits events in all the ways that the library has for it and returns
// their ids in the order given.
func (e *emitter) emit(ctx context.Context, events []eventqueue.NewEvent) ([]eventqueue.EventID, error) {
	ids := make([]eventqueue.EventID, 0, len(events))
	for len(ids) < len(events) {
		rest := events[len(ids):]
		var some []eventqueue.EventID
		var err error
		switch {
		case len(events) < emitMinimum || len(ids) >= emitSingly+emitInTx:
			some, err = e.queue.EmitMany(ctx, rest[:min(emitAtOnce, len(rest))])
		case len(ids) < emitSingly:
			var id eventqueue.EventID
			id, err = e.queue.Emit(ctx, rest[0])
			some = []eventqueue.EventID{id}
		default:
			err = e.queue.InTx(ctx, func(ctx context.Context, tx *eventqueue.Tx) (err error) {
				some, err = tx.Emit(ctx, rest[:emitInTx]...)
				return err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("after %d of %d events: %w", len(ids), len(events), err)
		}
		for i, id := range some {
			e.emitted[id] = sha256.Sum256(rest[i].Value)
		}
		ids = append(ids, some...)
	}
	return ids, nil
}
