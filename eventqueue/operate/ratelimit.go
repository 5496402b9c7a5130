package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ratelimit"
)

// RateLimit bounds how many events may begin to run: per minute (a burst) and per
// day. Windows are whole minutes and whole days, in UTC, by the database's clock.
// Every run counts, so an event that is retried counts again.
type RateLimit struct {
	// Scope is a handler on a canvas, with any modifier; with an empty Module and
	// Name it is the whole canvas. An event has to pass both.
	eventqueue.Scope

	// PerMinute and PerDay are the limits of the two windows; 0 is none. One of them
	// is needed.
	PerMinute int
	PerDay    int

	// Mode is RateExact ("", the default) or RateApproximate.
	Mode ratelimit.Mode
}

// Validate names the first invalid field.
func (l RateLimit) Validate() error {
	if err := l.ValidateRate(); err != nil {
		return err
	}
	switch {
	case l.PerMinute < 0 || l.PerMinute > ratelimit.MaxRate:
		return fmt.Errorf("per_minute: is %d: it must be from 1 to %d, or 0 for no such limit", l.PerMinute, ratelimit.MaxRate)
	case l.PerDay < 0 || l.PerDay > ratelimit.MaxRate:
		return fmt.Errorf("per_day: is %d: it must be from 1 to %d, or 0 for no such limit", l.PerDay, ratelimit.MaxRate)
	case l.PerMinute == 0 && l.PerDay == 0:
		return errors.New("per_minute and per_day: one of them is needed; to let nothing run, pause or block the handler")
	case l.Mode != "" && l.Mode != ratelimit.Exact && l.Mode != ratelimit.Approximate:
		return fmt.Errorf("mode: is %q: it must be %s or %s", string(l.Mode), ratelimit.Exact, ratelimit.Approximate)
	default:
		return nil
	}
}

// allows reports whether l lets something run that other does not.
func (l RateLimit) allows(other RateLimit) bool {
	more := func(n, than int) bool { return than > 0 && (n == 0 || n > than) }
	return more(l.PerMinute, other.PerMinute) || more(l.PerDay, other.PerDay)
}

// RateStatus is a limit and its counts.
type RateStatus struct {
	RateLimit
	ratelimit.Windows
}

// RateStore is what rate limits need of the database beside RateTaker;
// pgstore.Store is one.
type RateStore interface {
	// SetRateLimit adds a limit, or replaces that of its scope, which it returns.
	// Workers see it with their next claim.
	SetRateLimit(ctx context.Context, limit RateLimit) (before *RateLimit, err error)

	// RemoveRateLimit removes the limit of a scope. Its counts stay until their windows are over.
	RemoveRateLimit(ctx context.Context, scope eventqueue.Scope) (removed bool, err error)

	// RateLimits lists the limits of a canvas, or all, by canvas, module and name,
	// with their counts as they are now.
	RateLimits(ctx context.Context, canvas *eventqueue.CanvasID) ([]RateStatus, error)

	// CheckRate returns the state of the limits of a scope, and counts nothing.
	CheckRate(ctx context.Context, scope eventqueue.Scope) (ratelimit.Answer, error)

	// TakeLimited reads no more than limit events of the scope after a place, in the order of
	// places. Of these it makes due, marks as published, and returns, the ones that a limit has put
	// off and that were not changed since; those that are claimed become due at once if that claim
	// ends with OverLimit. next is the last place read, the zero RatePlace when there are no more.
	TakeLimited(ctx context.Context, scope eventqueue.Scope, after RatePlace, limit int) (due []eventqueue.Notification, next RatePlace, err error)
}

// RatePlace is a place among the events of a canvas.
type RatePlace struct {
	Module string
	Name   string
	Event  eventqueue.EventID
}

// RateLimits changes, lists and checks rate limits. It is safe for concurrent use,
// here and in any number of processes at once; every operation may be repeated (I14).
type RateLimits struct {
	store RateStore
	queue *eventqueue.Queue
}

// NewRateLimits makes RateLimits; the queue publishes notifications of the events that may run when
// a limit is raised or removed.
func NewRateLimits(store RateStore, queue *eventqueue.Queue) (*RateLimits, error) {
	if store == nil || queue == nil {
		return nil, errors.New("operate.NewRateLimits: store and queue must not be nil")
	}
	return &RateLimits{store, queue}, nil
}

// Set adds a limit, or replaces that of its scope, from the next claim on. The counts of the
// current windows stay, also those of a limit that was removed in them. When the new limit allows more than the old one, the events that it has put
// off are released; it returns how many. When that fails half-way, the limit is set, and Release
// does the rest.
func (r *RateLimits) Set(ctx context.Context, limit RateLimit) (notified int, err error) {
	if limit.Mode == "" {
		limit.Mode = ratelimit.Exact
	}
	if err := limit.Validate(); err != nil {
		return 0, fmt.Errorf("set the rate limit: %w", err)
	}
	before, err := r.store.SetRateLimit(ctx, limit)
	if err != nil {
		return 0, fmt.Errorf("set the rate limit of %s: %w", scopeText(limit.Scope), err)
	}
	if before == nil || !limit.allows(*before) {
		return 0, nil
	}
	return r.Release(ctx, limit.Scope)
}

// Remove removes the limit of a scope, and releases the events that it has put
// off. It returns whether there was a limit and how many events were notified. When it fails
// half-way, the limit is gone, and repeating the call does the rest.
func (r *RateLimits) Remove(ctx context.Context, scope eventqueue.Scope) (removed bool, notified int, err error) {
	if err := scope.ValidateRate(); err != nil {
		return false, 0, fmt.Errorf("remove the rate limit: %w", err)
	}
	if removed, err = r.store.RemoveRateLimit(ctx, scope); err != nil {
		return false, 0, fmt.Errorf("remove the rate limit of %s: %w", scopeText(scope), err)
	}
	notified, err = r.Release(ctx, scope)
	return removed, notified, err
}

// Release makes the events of a scope due that a limit has put off, notifies them, however many
// they are, and returns how many. Events beyond a limit are put off once more. Set and Remove do
// this themselves; Release is for limits that were changed in SQL.
func (r *RateLimits) Release(ctx context.Context, scope eventqueue.Scope) (notified int, err error) {
	if err := scope.ValidateRate(); err != nil {
		return 0, fmt.Errorf("release the events that a rate limit has put off: %w", err)
	}
	for after := (RatePlace{}); ; {
		due, next, err := r.store.TakeLimited(ctx, scope, after, eventqueue.MaxPublish)
		if err != nil {
			return notified, fmt.Errorf("make the events of %s due that a rate limit has put off: %w", scopeText(scope), err)
		}
		r.queue.Notify(ctx, due)
		notified += len(due)
		if next == (RatePlace{}) {
			return notified, nil
		}
		after = next
	}
}

// List returns the limits of a canvas, or of all when it is nil, with their counts.
func (r *RateLimits) List(ctx context.Context, canvas *eventqueue.CanvasID) ([]RateStatus, error) {
	all, err := r.store.RateLimits(ctx, canvas)
	if err != nil {
		return nil, fmt.Errorf("list the rate limits: %w", err)
	}
	return all, nil
}

// Check reports whether an event of a handler on a canvas may run now: wait is 0 if so, and
// otherwise how long an event that is emitted now will probably wait, behind those that wait
// already. The zero handler asks about the limit of the canvas alone. Check counts nothing. An
// event that is emitted all the same is accepted, and waits.
func (r *RateLimits) Check(ctx context.Context, canvas eventqueue.CanvasID, handler eventqueue.HandlerKey) (wait time.Duration, err error) {
	scope := eventqueue.Scope{Canvas: canvas, Module: handler.Module, Name: handler.Name}
	if err := scope.ValidateRate(); err != nil {
		return 0, fmt.Errorf("check the rate: %w", err)
	}
	answer, err := r.store.CheckRate(ctx, scope)
	if err != nil {
		return 0, fmt.Errorf("check the rate of %s: %w", scopeText(scope), err)
	}
	for _, limit := range []*ratelimit.State{answer.Canvas, answer.Handler} {
		if limit != nil && limit.Room() == 0 {
			until, _ := limit.Wait(limit.Waiting)
			wait = max(wait, until)
		}
	}
	return wait, nil
}

// scopeText names the scope of a limit in messages.
func scopeText(s eventqueue.Scope) string {
	if s.WholeCanvas() {
		return "canvas " + s.Canvas.String()
	}
	return s.String()
}
