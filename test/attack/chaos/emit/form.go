package emit

import (
	"context"

	"eventsv2/eventqueue"
)

// form is one way of emitting.
type form struct {
	name  string
	share int // of 100 calls
	most  int // events per call
	// unique: its events have unique keys; keyless: they have no keys; odd: somebody writes their
	// rows by hand; typed: their completion emits others.
	unique, keyless, odd, typed bool
	emit                        emitFunc
}

// emitFunc emits events in one way.
type emitFunc func(ctx context.Context, e *Emitters, events []eventqueue.NewEvent) error
