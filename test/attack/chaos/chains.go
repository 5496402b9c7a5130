package main

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
	"eventsv2/test/attack/chaos/task"
)

// emitTyped emits typed events, on the canvas of the first one.
func emitTyped(ctx context.Context, e *emitters, events []eventqueue.NewEvent) error {
	all := make([]typed.Event, len(events))
	for i := range events {
		all[i] = taskOf(events[i])
	}
	_, err := e.bus.Emit(ctx, events[0].Canvas, all...)
	return err
}

// link reports whether the completion of a typed event emitted this one, for one handler.
func (s *story) link() bool {
	return s.entered.handler.Module == task.ChainModule && s.entered.parent != 0
}

// dispatched reports whether a claim completed a typed event, as the events of its handlers prove:
// they are emitted in the transaction that completes it.
func (c *checker) dispatched(t *trial, attempt int32) bool {
	last := t.changes[len(t.changes)-1]
	return t.entered.handler == task.Dispatch() && c.parents[t.id] && last.op == opDelete && last.old.attempts == attempt
}
