// Package batch runs events together: a handler gets many at once, and each has an outcome of its own. For a database or an
// index that takes a thousand rows as fast as one.
//
//	err := service.OnBatch(s, "index", 500, 200*time.Millisecond, func(ctx context.Context, pages []PageChanged, runs []*eventqueue.Run) []error {
//		return index.Put(ctx, pages) // an error for each that was not put, and nil for the others
//	})
//
// To the worker each event of a batch is a run like any other, with its own claim, attempts, limits and end. The runs of a
// Collector wait for each other in their goroutines, so that a batch is no larger than the worker's Concurrency, and its events are
// those that may run at once: of an ordering key there is one.
package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/invoke"
)

const (
	// MaxSize is how many events a batch may have.
	MaxSize = 10_000
	// MaxWait is how long an event may wait for others.
	MaxWait = time.Minute
)

// Func runs a batch: events, and the run of each, at the same index. It returns an error for each, at its index, with the meaning of a
// Handler's: nil completes the event, Permanent fails it, Snooze puts it off, and any other is a failed attempt. A nil slice
// completes all; one of another length is a failed attempt of all.
//
// ctx ends with the first time-out of its runs, when the worker stops, and when all of its runs have ended. A run that ends alone, since its event was
// cancelled or its lock is lost, returns without waiting for the batch, and what the function returns for it has no effect. ctx has no values
// and no parent: use [eventqueue.WithParent] for an event that one of them emits. The runs may be completed with CompleteTx, or several in
// one transaction with CompleteIn.
//
// If it panics, or ends its goroutine, with several events, one of them may be the cause: all of them use no attempt and become suspects
// (docs/guarantees.md), so that each is run again alone. It is called from many goroutines at once.
type Func[T any] func(ctx context.Context, events []T, runs []*eventqueue.Run) []error

// Collector collects the runs of one handler into batches. It is safe for concurrent use.
type Collector[T any] struct {
	size int
	wait time.Duration
	f    Func[T]

	mu   sync.Mutex
	open *group[T] // takes more; nil: the next run begins one
}

// New returns a Collector of batches of up to size events, of which the first waits no longer than wait for the others. That
// wait is a part of the run's Timeout, of which it takes no more than half. With a size of 1 each event is run alone, without a wait.
func New[T any](size int, wait time.Duration, f Func[T]) (*Collector[T], error) {
	switch {
	case f == nil:
		return nil, errors.New("the function of the batches is nil")
	case size < 1 || size > MaxSize:
		return nil, fmt.Errorf("the size of a batch is %d: it is from 1 to %d", size, MaxSize)
	case wait < 0 || wait > MaxWait:
		return nil, fmt.Errorf("the wait for a batch is %s: it is from 0 to %s", wait, MaxWait)
	}
	return &Collector[T]{size: size, wait: wait, f: f}, nil
}

// Handler is a Collector's Run for events that are not typed.
func Handler(size int, wait time.Duration, f func(ctx context.Context, runs []*eventqueue.Run) []error) (eventqueue.Handler, error) {
	var together Func[struct{}]
	if f != nil {
		together = func(ctx context.Context, _ []struct{}, runs []*eventqueue.Run) []error { return f(ctx, runs) }
	}
	c, err := New(size, wait, together)
	if err != nil {
		return nil, err
	}
	return eventqueue.HandlerFunc(func(ctx context.Context, run *eventqueue.Run) error { return c.Run(ctx, struct{}{}, run) }), nil
}

// group are the runs of one batch.
type group[T any] struct {
	entries []*entry[T] // of an open group the Collector's
	timer   *time.Timer
	done    chan struct{} // closed when each entry has its err
}

type entry[T any] struct {
	ctx   context.Context //nolint:containedctx // that of a run which waits in it
	event T
	run   *eventqueue.Run
	err   error
}

// Run runs an event with others, and returns its own error. If its context ends while it waits for others, it returns why. A
// suspect, of which it is not known whether it kills its workers, is run alone.
func (c *Collector[T]) Run(ctx context.Context, event T, run *eventqueue.Run) error {
	e := &entry[T]{ctx: ctx, event: event, run: run}
	var g *group[T]
	if c.size == 1 || run.Suspect {
		g = &group[T]{entries: []*entry[T]{e}, done: make(chan struct{})}
		go c.run(g)
	} else {
		g = c.join(e)
	}
	select {
	case <-g.done:
		return e.err
	case <-ctx.Done():
	}
	if c.leave(g, e) || endsAlone(ctx) {
		return context.Cause(ctx)
	}
	<-g.done
	return e.err
}

// endsAlone reports whether a run has ended for a reason that is no other's.
func endsAlone(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, eventqueue.ErrCancelled) || errors.Is(cause, eventqueue.ErrLockLost)
}

// join adds a run to the open group, and begins the batch that is full with it.
func (c *Collector[T]) join(e *entry[T]) *group[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.open
	if g == nil {
		g = &group[T]{done: make(chan struct{})}
		c.open = g
		wait := c.wait
		if deadline, has := e.ctx.Deadline(); has {
			wait = min(wait, time.Until(deadline)/2)
		}
		g.timer = time.AfterFunc(wait, func() { c.begin(g) })
	}
	g.entries = append(g.entries, e)
	if len(g.entries) == c.size {
		c.open = nil
		g.timer.Stop()
		go c.run(g)
	}
	return g
}

// begin begins a batch that has waited for long enough, unless it was begun.
func (c *Collector[T]) begin(g *group[T]) {
	c.mu.Lock()
	begins := c.open == g
	if begins {
		c.open = nil
	}
	c.mu.Unlock()
	if begins {
		c.run(g)
	}
}

// leave takes a run out of a group that is still open, and reports whether it was.
func (c *Collector[T]) leave(g *group[T], e *entry[T]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open != g {
		return false
	}
	g.entries = slices.DeleteFunc(g.entries, func(other *entry[T]) bool { return other == e })
	if len(g.entries) == 0 {
		c.open = nil
		g.timer.Stop()
	}
	return true
}

// errGone is the error of events whose Func has ended its goroutine.
var errGone = errors.New("the handler of the batch ended its goroutine without returning")

// suspectError is the error of the events of a batch of which one may have ended the call.
type suspectError struct {
	error
	events int
}

func (e *suspectError) Error() string {
	return fmt.Sprintf("a batch of %d events ended; each of them is run again alone: %s", e.events, e.error)
}
func (e *suspectError) Unwrap() error { return e.error }

// Lost has the worker make a suspect of each event.
func (*suspectError) Lost() bool { return true }

// run runs a batch that takes no more, and sets the error of each entry.
func (c *Collector[T]) run(g *group[T]) {
	defer close(g.done)
	ctx, release := together(g.entries)
	defer release()
	events, runs := make([]T, len(g.entries)), make([]*eventqueue.Run, len(g.entries))
	for i, e := range g.entries {
		events[i], runs[i] = e.event, e.run
	}
	var errs []error
	err := errGone
	ended, returned := make(chan struct{}), false
	go func() { // which the function may end
		defer close(ended)
		defer invoke.Recovered(&err)
		errs = c.f(ctx, events, runs)
		err, returned = nil, true
	}()
	<-ended
	switch {
	case !returned && len(events) > 1:
		err = &suspectError{err, len(events)}
	case err == nil && errs != nil && len(errs) != len(events):
		err = fmt.Errorf("the handler of the batch returned %d errors for %d events: it has to return one for each, or nil", len(errs), len(events))
	}
	for i, e := range g.entries {
		e.err = err
		if err == nil && errs != nil {
			e.err = errs[i]
		}
	}
}

// together is the context of a batch; see Func.
func together[T any](entries []*entry[T]) (ctx context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var left atomic.Int64
	left.Store(int64(len(entries)))
	var first time.Time
	stops := make([]func() bool, len(entries))
	for i, e := range entries {
		if deadline, has := e.ctx.Deadline(); has && (first.IsZero() || deadline.Before(first)) {
			first = deadline
		}
		stops[i] = context.AfterFunc(e.ctx, func() {
			if left.Add(-1) == 0 || !endsAlone(e.ctx) {
				cancel(context.Cause(e.ctx))
			}
		})
	}
	free := context.CancelFunc(func() {})
	if !first.IsZero() {
		ctx, free = context.WithDeadlineCause(ctx, first, eventqueue.ErrTimeout)
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		free()
		cancel(nil)
	}
}
