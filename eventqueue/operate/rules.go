package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/refusal"
	"eventsv2/internal/rounds"
)

// RuleStore is the database as the rules use it; pgstore.Store implements it.
type RuleStore interface {
	// AddRule adds a rule and waits for the claims that began before it, so that
	// after it has returned no claim of the scope commits until the rule is
	// lifted (I7). It returns false when the rule was there already, which it then leaves as it
	// is, and ErrUntilPassed, without adding it, when its end has passed.
	AddRule(ctx context.Context, rule Rule) (bool, error)

	// LiftRule removes a rule. With a Rate it gives the rule that rate instead, and takes its end away:
	// Release then removes it.
	LiftRule(ctx context.Context, lift Lift) (Lifted, error)

	// Release lets run the next events of a rule that is lifted at a rate: so many of those that are
	// due and that no other rule holds back as the rate allows since the last call, but not for more
	// than MaxReleaseTime. When there are fewer, it removes the rule.
	Release(ctx context.Context, t RuleType, scope RuleScope) (Released, error)

	// RulesToLift returns the rules whose end has passed, or comes within a time, and those that are lifted at
	// a rate, without their CreatedAt.
	RulesToLift(ctx context.Context, within time.Duration) ([]RuleToLift, error)

	// Woken gets a value when such a rule may have been written, if a relay runs in this program and hears of it.
	Woken() <-chan struct{}

	// WaitingScopes returns the handlers of a scope with a Prefix that have waiting events, whatever
	// the modifier.
	WaitingScopes(ctx context.Context, scope RuleScope) ([]eventqueue.Scope, error)

	// TakeWaiting reads no more than limit waiting events of a handler, by id. Of these it marks as
	// published, and returns, those that are due within MaxRequeue, not notified since the given time
	// and held back by no rule. next is the last id read, 0 when there are no more.
	TakeWaiting(ctx context.Context, of Waiting, limit int) (waiting []eventqueue.Notification, next eventqueue.EventID, err error)
}

// RuleToLift is a rule whose end has come, or comes In a time by the database's clock.
type RuleToLift struct {
	Rule
	In time.Duration
}

// Waiting are events of a handler that a rule may have held back.
type Waiting struct {
	eventqueue.Scope
	// Modifier: only those with it. Empty: whatever the modifier.
	Modifier string
	// Since: only those that were not notified since this time of the database's clock.
	Since time.Time
	// After and UpTo: only those with ids above the one and up to the other, which is 0 for all.
	After, UpTo eventqueue.EventID
}

// Rules pauses and blocks handlers. It is safe for concurrent use, here and in
// any number of processes at once; every operation may be repeated (I14).
type Rules struct {
	store RuleStore
	queue *eventqueue.Queue

	rounds *rounds.Watch
	loop   *rounds.Loop // that makes the calls; nil when it is not RunExpiry

	refused *refusal.Rows[ruleID] // that cannot be lifted; nil when it is not RunExpiry
}

// ruleID identifies a rule.
type ruleID struct {
	Type RuleType
	RuleScope
}

// NewRules makes Rules; the queue publishes notifications of the waiting events when a rule is
// lifted.
func NewRules(store RuleStore, queue *eventqueue.Queue) (*Rules, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewRules: store and queue must not be nil")
	}
	return &Rules{store: store, queue: queue, rounds: &rounds.Watch{}}, nil
}

// Add pauses or blocks a handler. It is AddRule without a reason, an actor and an end.
func (r *Rules) Add(ctx context.Context, t RuleType, scope eventqueue.Scope) (added bool, err error) {
	return r.AddRule(ctx, RuleOf(t, scope))
}

// AddRule pauses or blocks what the rule's scope names. After it has returned, no claim of these
// handlers commits until the rule is lifted; runs that had begun go on. It
// returns false when the rule was there already: that stays as it is, with its own reason, actor and
// end. A rule that is being lifted at a rate is replaced, and holds back all events again. The error is ErrUntilPassed when the end has passed; nothing is added then.
func (r *Rules) AddRule(ctx context.Context, rule Rule) (added bool, err error) {
	if err := rule.Validate(); err != nil {
		return false, fmt.Errorf("%s: %w", rule.Type, err)
	}
	if added, err = r.store.AddRule(ctx, rule); err != nil {
		return false, fmt.Errorf("%s %s: %w", rule.Type, rule.RuleScope, err)
	}
	return added, nil
}

// Lift removes a rule of a handler, whatever the modifier. It is LiftRule at once.
func (r *Rules) Lift(ctx context.Context, t RuleType, scope eventqueue.Scope) (removed bool, notified int, err error) {
	result, err := r.LiftRule(ctx, LiftOf(t, scope))
	return result.Removed, result.Notified, err
}

// LiftResult is the result of lifting a rule.
type LiftResult struct {
	// Removed reports whether the rule was there.
	Removed bool
	// GoesOn reports whether the rule is lifted at a rate and not all events have been let run: cron goes on
	// (RunExpiry).
	GoesOn bool
	// Notified is how many events were notified.
	Notified int
}

// LiftRule removes a rule. When no other one holds back all that it was about, every waiting
// event that may run is notified again, however many there are. When LiftRule fails half-way, the rule
// is lifted, and the relay notifies the rest.
//
// With a Rate, the waiting events run by and by, in the order of their ids: as many as a second allows at
// once, and the others by RunExpiry, in whatever program, which removes the rule when nothing
// waits any more. Until then events that are emitted wait behind them; a rate below that of new
// events never gets there. Events that another rule holds back are not waited for, nor those that are not
// due. LiftRule again, without a rate, lifts the rule at once; with another one, it changes the rate.
func (r *Rules) LiftRule(ctx context.Context, lift Lift) (LiftResult, error) {
	if err := lift.Validate(); err != nil {
		return LiftResult{}, fmt.Errorf("lift %s: %w", lift.Type, err)
	}
	lifting, done := r.step(ctx)
	lifted, err := r.store.LiftRule(lifting, lift)
	done()
	if err != nil {
		return LiftResult{}, fmt.Errorf("lift %s of %s: %w", lift.Type, lift.RuleScope, err)
	}
	result := LiftResult{Removed: lifted.Removed}
	if lift.Rate > 0 && lifted.Removed {
		var released Released
		released, result.Notified, err = r.release(ctx, lift.Type, lift.RuleScope)
		result.GoesOn = released.GoesOn
		return result, err
	}
	if lift.Expired && !lifted.Removed { // whoever has removed it notifies
		return result, nil
	}
	if !lifted.Last {
		return result, nil
	}
	since := lifted.At
	if !lifted.Removed {
		// An earlier call may have removed it and failed after that.
		since = since.Add(-repeatLift)
	}
	result.Notified, err = r.notifyWaiting(ctx, lift.RuleScope, Waiting{Since: since})
	return result, err
}

// release lets run the next events of a rule that is lifted at a rate.
func (r *Rules) release(ctx context.Context, t RuleType, scope RuleScope) (released Released, notified int, err error) {
	releasing, done := r.step(ctx)
	released, err = r.store.Release(releasing, t, scope)
	done()
	if err != nil {
		return Released{GoesOn: true}, 0, fmt.Errorf("lift %s of %s at a rate: %w", t, scope, err)
	}
	if released.UpTo > released.After || released.Removed && released.Last {
		notified, err = r.notifyWaiting(ctx, scope, Waiting{Since: released.At, After: released.After, UpTo: released.UpTo})
	}
	return released, notified, err
}

// repeatLift is how long ago events must have been notified last to be notified by lifting a rule
// that is not there.
const repeatLift = time.Minute

// notifyWaiting notifies what waits in a scope. Of the page, only the handler is still to be filled in.
func (r *Rules) notifyWaiting(ctx context.Context, scope RuleScope, page Waiting) (notified int, err error) {
	handlers := []eventqueue.Scope{scope.Scope}
	if scope.Prefix {
		finding, done := r.step(ctx)
		handlers, err = r.store.WaitingScopes(finding, scope)
		done()
	}
	page.Modifier = scope.Modifier
	for i := 0; i < len(handlers) && err == nil; i++ {
		page.Scope = handlers[i]
		var n int
		n, err = r.notifyHandler(ctx, page)
		notified += n
	}
	if err != nil {
		err = fmt.Errorf("notify the waiting events of %s: %w", scope, err)
	}
	return notified, err
}

func (r *Rules) notifyHandler(ctx context.Context, page Waiting) (notified int, err error) {
	for {
		taking, done := r.step(ctx)
		waiting, next, err := r.store.TakeWaiting(taking, page, eventqueue.MaxPublish)
		done()
		if err = refusal.Report(r.queue.Logger(), err); err != nil {
			return notified, err
		}
		r.queue.Notify(ctx, waiting)
		notified += len(waiting)
		if next == 0 {
			return notified, nil
		}
		page.After = next
	}
}
