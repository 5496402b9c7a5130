package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/refusal"
)

// RuleType says who has stopped a handler.
type RuleType = machine.Rule

// The two types are independent: lifting one leaves the other (I7).
const (
	PauseRule = machine.PauseRule // by the user
	BlockRule = machine.BlockRule // by an admin
)

// Rule is one row of scheduling_rules.
type Rule struct {
	Type RuleType
	eventqueue.Scope
	CreatedAt time.Time
}

// RuleStore is what the rules need of the database; pgstore.Store is one.
type RuleStore interface {
	// AddRule adds a rule and waits for the claims that began before it, so that
	// after it has returned no claim of the scope commits until the rule is
	// lifted (I7). It returns false when the rule was there already.
	AddRule(ctx context.Context, t RuleType, scope eventqueue.Scope) (bool, error)

	// LiftRule removes a rule.
	LiftRule(ctx context.Context, t RuleType, scope eventqueue.Scope) (Lifted, error)

	// TakeWaiting reads no more than limit waiting events of the scope with ids above after, by id.
	// Of these it marks as published, and returns, those that are due within MaxRequeue and not
	// notified since the given time of the database's clock. next is the last id read, 0 when there
	// are no more.
	TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (waiting []eventqueue.Notification, next eventqueue.EventID, err error)
}

// Lifted is the result of lifting a rule.
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
	queue *eventqueue.Queue
}

// NewRules makes Rules; the queue publishes notifications of the waiting events when a rule is
// lifted.
func NewRules(store RuleStore, queue *eventqueue.Queue) (*Rules, error) {
	if store == nil || queue == nil {
		return nil, errors.New("control.NewRules: store and queue must not be nil")
	}
	return &Rules{store, queue}, nil
}

// Add pauses or blocks a handler. After it has returned, no claim of the
// handler commits until the rule is lifted; runs that had begun go on. It
// returns false when the rule was there already.
func (r *Rules) Add(ctx context.Context, t RuleType, scope eventqueue.Scope) (added bool, err error) {
	if err := scope.Validate(); err != nil {
		return false, fmt.Errorf("%s: %w", t, err)
	}
	if added, err = r.store.AddRule(ctx, t, scope); err != nil {
		return false, fmt.Errorf("%s %s: %w", t, scope, err)
	}
	return added, nil
}

// Lift removes a rule. When it was the last one of its scope, every waiting event is notified
// again, however many there are. Lift returns whether the rule was there and how many events were
// notified. When it fails half-way, the rule is lifted, and the relay notifies the rest.
func (r *Rules) Lift(ctx context.Context, t RuleType, scope eventqueue.Scope) (removed bool, notified int, err error) {
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
		// An earlier call may have removed it and failed after that.
		since = since.Add(-repeatLift)
	}
	notified, err = r.notifyWaiting(ctx, scope, since)
	if err != nil {
		err = fmt.Errorf("notify the waiting events of %s: %w", scope, err)
	}
	return lifted.Removed, notified, err
}

// repeatLift is how long ago events must have been notified last to be notified by lifting a rule
// that is not there.
const repeatLift = time.Minute

func (r *Rules) notifyWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time) (notified int, err error) {
	after := eventqueue.EventID(0)
	for {
		waiting, next, err := r.store.TakeWaiting(ctx, scope, since, after, eventqueue.MaxPublish)
		if err = refusal.Report(r.queue.Logger(), err); err != nil {
			return notified, err
		}
		r.queue.Notify(ctx, waiting)
		notified += len(waiting)
		if next == 0 {
			return notified, nil
		}
		after = next
	}
}
