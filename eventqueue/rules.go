package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RuleType says who holds a handler back.
type RuleType string

// The two types are independent: lifting one leaves the other (I7).
const (
	PauseRule RuleType = "pause" // by the user
	BlockRule RuleType = "block" // by an admin
)

// Scope is what a rule applies to: all events of a handler on a canvas, with
// any modifier. In the database Module is event_space and Name handler_name.
type Scope struct {
	Canvas CanvasID
	Module string
	Name   string
}

// String names the scope in messages.
func (s Scope) String() string { return fmt.Sprintf("%s/%s on canvas %s", s.Module, s.Name, s.Canvas) }

// Validate names the first field that cannot be stored.
func (s Scope) Validate() error {
	if s.Canvas == (CanvasID{}) {
		return errors.New("canvas_id: is missing")
	}
	if field, err := CheckHandler(HandlerKey{s.Module, s.Name, "_"}); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// Rule is one row of scheduling_rules.
type Rule struct {
	Type RuleType
	Scope
	CreatedAt time.Time
}

// RuleStore is what the rules need of the database; pgstore.Store is one.
type RuleStore interface {
	// AddRule adds a rule and waits for the claims that began before it, so that
	// after it has returned no claim of the scope commits until the rule is
	// lifted (I7). It returns false when the rule was there already.
	AddRule(ctx context.Context, t RuleType, scope Scope) (bool, error)

	// LiftRule removes a rule.
	LiftRule(ctx context.Context, t RuleType, scope Scope) (Lifted, error)

	// TakeWaiting looks at no more than limit waiting events of the scope with
	// ids above after, by id. Of these it marks as published, and returns, those
	// that are due within MaxRequeue and not notified since the given time of the
	// database's clock. next is the last id looked at, 0 when there are no more.
	TakeWaiting(ctx context.Context, scope Scope, since time.Time, after EventID, limit int) (waiting []Notification, next EventID, err error)
}

// Lifted is what became of a rule that was to be lifted.
type Lifted struct {
	// Removed says that the rule was there.
	Removed bool
	// Last says that no rule of the scope is left.
	Last bool
	// At is the time by the database's clock.
	At time.Time
}

// Rules pauses and blocks handlers. It is safe for concurrent use, here and in
// any number of processes at once; every operation may be repeated (I14).
type Rules struct {
	store RuleStore
	queue *Queue
}

// NewRules makes Rules; the queue publishes what waits when a rule is lifted.
func NewRules(store RuleStore, queue *Queue) (*Rules, error) {
	if store == nil || queue == nil {
		return nil, errors.New("eventqueue.NewRules: store and queue must not be nil")
	}
	return &Rules{store, queue}, nil
}

// Add pauses or blocks a handler. After it has returned, no claim of the
// handler commits until the rule is lifted; runs that had begun go on. It
// returns false when the rule was there already.
func (r *Rules) Add(ctx context.Context, t RuleType, scope Scope) (added bool, err error) {
	if err := scope.Validate(); err != nil {
		return false, fmt.Errorf("%s: %w", t, err)
	}
	if added, err = r.store.AddRule(ctx, t, scope); err != nil {
		return false, fmt.Errorf("%s %s: %w", t, scope, err)
	}
	return added, nil
}

// Lift removes a rule, and when it was the last one of its scope has every
// waiting event notified again, however many there are. It returns whether the
// rule was there and how many events were notified. When it fails half-way the
// rule is lifted, and the relay notifies the rest.
func (r *Rules) Lift(ctx context.Context, t RuleType, scope Scope) (removed bool, notified int, err error) {
	if err := scope.Validate(); err != nil {
		return false, 0, fmt.Errorf("lift %s: %w", t, err)
	}
	lifted, err := r.store.LiftRule(ctx, t, scope)
	if err != nil {
		return false, 0, fmt.Errorf("lift %s of %s: %w", t, scope, err)
	}
	if !lifted.Last {
		return lifted.Removed, 0, nil
	}
	since := lifted.At
	if !lifted.Removed {
		// Perhaps an earlier call removed it and got no further.
		since = since.Add(-repeatLift)
	}
	notified, err = r.notifyWaiting(ctx, scope, since)
	if err != nil {
		err = fmt.Errorf("notify the waiting events of %s: %w", scope, err)
	}
	return lifted.Removed, notified, err
}

// repeatLift is how long events must have been silent to be notified by lifting a
// rule that is not there.
const repeatLift = time.Minute

func (r *Rules) notifyWaiting(ctx context.Context, scope Scope, since time.Time) (notified int, err error) {
	after := EventID(0)
	for {
		waiting, next, err := r.store.TakeWaiting(ctx, scope, since, after, MaxPublish)
		if err != nil {
			return notified, err
		}
		r.queue.publisher.publish(ctx, waiting)
		notified += len(waiting)
		if next == 0 {
			return notified, nil
		}
		after = next
	}
}
