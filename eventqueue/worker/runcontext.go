package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/attributes"
	"eventsv2/internal/runlog"
)

// runContext is the context of a run. It becomes a real one, with its timer, when it is asked for
// more than its deadline. Handlers that only compute never do that, and making, registering and
// releasing two contexts costs more than everything else about a small event.
type runContext struct {
	parent   context.Context //nolint:containedctx // this is a context
	event    *eventqueue.Event
	deadline time.Time
	log      runlog.Log // what is logged with it

	mu     sync.Mutex
	cause  error           // why it was ended, if it was
	ended  time.Time       // when it was ended before its handler returned, if it was
	made   context.Context //nolint:containedctx // nil until it is asked for
	cancel context.CancelCauseFunc
	free   context.CancelFunc // of the timer
}

// Deadline implements context.Context.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *runContext) Done() <-chan struct{} { return c.real().Done() }

// Err implements context.Context.
func (c *runContext) Err() error { return c.real().Err() }

// Value implements context.Context. The event, whose children are emitted in the context, and the log cost no
// real one.
func (c *runContext) Value(key any) any {
	switch key.(type) {
	case attributes.ParentKey:
		return c.event
	case runlog.Key:
		return &c.log
	default:
		return c.real().Value(key)
	}
}

func (c *runContext) real() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		var cancelable context.Context
		cancelable, c.cancel = context.WithCancelCause(c.parent)
		if c.cause != nil && !errors.Is(c.cause, eventqueue.ErrTimeout) { // the deadline reports it
			c.cancel(c.cause)
		}
		c.made, c.free = context.WithDeadlineCause(cancelable, c.deadline, eventqueue.ErrTimeout)
	}
	return c.made
}

// end ends the context with a cause. The first cause counts.
func (c *runContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(cause)
}

func (c *runContext) endLocked(cause error) {
	if c.cause == nil {
		c.cause = cause
		if !errors.Is(cause, errReturned) {
			c.ended = time.Now()
		}
		if c.made == nil && !time.Now().Before(c.deadline) { // it has ended already
			c.cause = eventqueue.ErrTimeout
		}
	}
	if c.made != nil {
		c.cancel(cause)
	}
}

// endsAt is when the context ended, or else when it will.
func (c *runContext) endsAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended.IsZero() && c.ended.Before(c.deadline) {
		return c.ended
	}
	return c.deadline
}

// endCause returns why the context has ended, or nil.
func (c *runContext) endCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// extend sets the deadline, before anybody has asked for the context.
func (c *runContext) extend(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = deadline
}

// errReturned is the cause when a handler has returned.
var errReturned = errors.New("the handler has returned")

// release is end for a run that is over.
func (c *runContext) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(errReturned)
	if c.free != nil {
		c.free()
	}
}
