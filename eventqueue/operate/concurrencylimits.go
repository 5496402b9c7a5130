package operate

import (
	"context"
	"errors"
	"fmt"
	"math"

	"eventsv2/eventqueue"
)

// ConcurrencyLimit bounds how many events may run at once: of a canvas, of one of its
// handlers, of one of its ordering keys, or of each of them. Of Module with Name,
// Key and EveryKey one may be set; none means the canvas.
type ConcurrencyLimit struct {
	Canvas eventqueue.CanvasID
	// Module and Name are the handler, with any modifier.
	Module, Name string
	// Key is a NewEvent.OrderingKey, and EveryKey stands for those without a limit
	// of their own. Without a limit one event of a key runs at a time; with a
	// higher one, so many of the first in its order.
	Key      string
	EveryKey bool
	// Max is at least 1.
	Max int
}

// String names what the limit is for.
func (l ConcurrencyLimit) String() string {
	switch {
	case l.EveryKey:
		return fmt.Sprintf("every ordering key of canvas %s", l.Canvas)
	case l.Key != "":
		return fmt.Sprintf("ordering key %q of canvas %s", l.Key, l.Canvas)
	case l.Module != "":
		return eventqueue.Scope{Canvas: l.Canvas, Module: l.Module, Name: l.Name}.String()
	default:
		return "canvas " + l.Canvas.String()
	}
}

// Validate names the first invalid field; it does not check Max.
func (l ConcurrencyLimit) Validate() error {
	set := 0
	for _, is := range []bool{l.Module != "" || l.Name != "", l.Key != "", l.EveryKey} {
		if is {
			set++
		}
	}
	switch {
	case l.Canvas == (eventqueue.CanvasID{}):
		return errors.New("canvas_id: is missing")
	case set > 1:
		return errors.New("a handler, an ordering key and every key exclude each other: set one of them, or none for the canvas")
	case l.Key != "":
		if err := eventqueue.CheckName(l.Key); err != nil {
			return fmt.Errorf("ordering_key: %w", err)
		}
	case l.Module != "" || l.Name != "":
		return eventqueue.Scope{Canvas: l.Canvas, Module: l.Module, Name: l.Name}.Validate()
	}
	return nil
}

// ConcurrencyLimitStore is the database as ConcurrencyLimits use it; pgstore.Store implements it.
type ConcurrencyLimitStore interface {
	// SetConcurrencyLimit sets a limit, or removes it when Max is 0. It returns
	// whether there was one before.
	SetConcurrencyLimit(ctx context.Context, limit ConcurrencyLimit) (before bool, err error)

	// ConcurrencyLimits lists the limits of a canvas.
	ConcurrencyLimits(ctx context.Context, canvas eventqueue.CanvasID) ([]ConcurrencyLimit, error)

	// FillGroups advances the ordering groups of a limit, as far as there is room, and returns the
	// events that may run by that. It takes a page of groups, those above after in the database's
	// order, and no more than some thousand events of each. next is the last group of a full page,
	// and empty when there are no more.
	FillGroups(ctx context.Context, limit ConcurrencyLimit, after string) (advanced []eventqueue.Event, next string, err error)
}

// ConcurrencyLimits sets how many events run at once. It is safe for concurrent use,
// here and in any number of processes; every operation may be repeated (I14).
type ConcurrencyLimits struct {
	store ConcurrencyLimitStore
	queue *eventqueue.Queue
}

// NewConcurrencyLimits makes ConcurrencyLimits; the queue notifies the events that may run
// when a limit is raised.
func NewConcurrencyLimits(store ConcurrencyLimitStore, queue *eventqueue.Queue) (*ConcurrencyLimits, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewConcurrencyLimits: store and queue must not be nil")
	}
	return &ConcurrencyLimits{store, queue}, nil
}

// Set sets a limit for the events that begin from now on: those that run, or may already run, are
// not stopped. When the limit is higher than before, waiting events are notified as far as there is
// room. When Set fails half-way, the limit is set, and the relay notifies the rest. It blocks for a
// few statements.
func (l *ConcurrencyLimits) Set(ctx context.Context, limit ConcurrencyLimit) error {
	if err := limit.Validate(); err != nil {
		return fmt.Errorf("set the concurrency limit: %w", err)
	}
	if limit.Max < 1 {
		return fmt.Errorf("set the concurrency limit of %s: Max is %d: it must be at least 1; to let none run, pause or block the handler", limit, limit.Max)
	}
	if limit.Max > math.MaxInt32 {
		return fmt.Errorf("set the concurrency limit of %s: Max is %d: it must be at most %d", limit, limit.Max, math.MaxInt32)
	}
	_, err := l.set(ctx, limit)
	return err
}

// Remove removes a limit, whatever its Max is, and notifies the events that may run by that. It
// returns whether there was a limit.
func (l *ConcurrencyLimits) Remove(ctx context.Context, limit ConcurrencyLimit) (bool, error) {
	if err := limit.Validate(); err != nil {
		return false, fmt.Errorf("remove the concurrency limit: %w", err)
	}
	limit.Max = 0
	return l.set(ctx, limit)
}

func (l *ConcurrencyLimits) set(ctx context.Context, limit ConcurrencyLimit) (before bool, err error) {
	if before, err = l.store.SetConcurrencyLimit(ctx, limit); err != nil {
		return false, fmt.Errorf("set the concurrency limit of %s: %w", limit, err)
	}
	for after := ""; ; {
		advanced, next, err := l.store.FillGroups(ctx, limit, after)
		if err != nil {
			return before, fmt.Errorf("the concurrency limit of %s is changed, and the relay notifies the events that may run now: %w", limit, err)
		}
		l.queue.NotifyEvents(ctx, advanced)
		switch {
		case len(advanced) > 0: // there may be more in the same groups
		case next == "":
			return before, nil
		default:
			after = next
		}
	}
}

// List returns the limits of a canvas: its own, then those of handlers, then those
// of keys, each by name.
func (l *ConcurrencyLimits) List(ctx context.Context, canvas eventqueue.CanvasID) ([]ConcurrencyLimit, error) {
	limits, err := l.store.ConcurrencyLimits(ctx, canvas)
	if err != nil {
		return nil, fmt.Errorf("list the concurrency limits of canvas %s: %w", canvas, err)
	}
	return limits, nil
}
