// Package invoke is where the code of handlers is called, and where its panics end.
package invoke

import (
	"context"
	"runtime/debug"

	"eventsv2/eventqueue"
)

// Handler runs a handler and returns a panic as a *eventqueue.PanicError. All code that calls handlers uses it.
func Handler(ctx context.Context, h eventqueue.Handler, run *eventqueue.Run) (err error) {
	defer Recovered(&err)
	return h.Handle(ctx, run)
}

// Recovered is deferred around a handler's code. It is the one place where panics of handlers are
// caught, and turns them into a *eventqueue.PanicError.
func Recovered(err *error) {
	if value := recover(); value != nil {
		*err = &eventqueue.PanicError{Value: value, Stack: debug.Stack()}
	}
}
