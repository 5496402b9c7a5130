package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RateMode says what a limit costs, and how strict it is.
type RateMode string

// The modes of a RateLimit.
const (
	// RateExact lets never more events begin in a window than the limit says. A
	// worker asks the database before it runs anything of the limit's scope.
	RateExact RateMode = "exact"

	// RateApproximate lets a worker decide from the counts that it knows, and tell
	// the database afterwards. Each worker may let no more than its ClaimBatch of
	// events begin that it has not told of, so the windows overshoot by at most that
	// times the number of workers; the overshoot is taken from the next window.
	RateApproximate RateMode = "approximate"
)

// MaxRate is the largest number of events that a limit may name.
const MaxRate = 1_000_000_000

// RateLimit bounds how many events may begin to run: per minute (a burst) and per
// day. Windows are whole minutes and whole days, in UTC, by the database's clock.
// Every run counts, so an event that is retried counts again.
type RateLimit struct {
	// Scope is a handler on a canvas, with any modifier; with an empty Module and
	// Name it is the whole canvas. An event has to pass both.
	Scope

	// PerMinute and PerDay are the limits of the two windows; 0 is none. One of them
	// is needed.
	PerMinute int
	PerDay    int

	// Mode is RateExact ("", the default) or RateApproximate.
	Mode RateMode
}

// WholeCanvas tells whether the scope is a whole canvas.
func (s Scope) WholeCanvas() bool { return s.Module == "" && s.Name == "" }

// ValidateRate names the first field that cannot be the scope of a RateLimit.
func (s Scope) ValidateRate() error {
	if s.WholeCanvas() {
		s.Module, s.Name = "_", "_" // the canvas is all there is to check
	}
	return s.Validate()
}

// Validate names the first field that makes no sense.
func (l RateLimit) Validate() error {
	if err := l.ValidateRate(); err != nil {
		return err
	}
	switch {
	case l.PerMinute < 0 || l.PerMinute > MaxRate:
		return fmt.Errorf("per_minute: is %d: it must be from 1 to %d, or 0 for no such limit", l.PerMinute, MaxRate)
	case l.PerDay < 0 || l.PerDay > MaxRate:
		return fmt.Errorf("per_day: is %d: it must be from 1 to %d, or 0 for no such limit", l.PerDay, MaxRate)
	case l.PerMinute == 0 && l.PerDay == 0:
		return errors.New("per_minute and per_day: one of them is needed; to let nothing run, pause or block the handler")
	case l.Mode != "" && l.Mode != RateExact && l.Mode != RateApproximate:
		return fmt.Errorf("mode: is %q: it must be %s or %s", string(l.Mode), RateExact, RateApproximate)
	default:
		return nil
	}
}

// allows tells whether l lets something run that other does not.
func (l RateLimit) allows(other RateLimit) bool {
	more := func(n, than int) bool { return than > 0 && (n == 0 || n > than) }
	return more(l.PerMinute, other.PerMinute) || more(l.PerDay, other.PerDay)
}

// RateStatus is a limit and what has been counted of it.
type RateStatus struct {
	RateLimit
	RateWindows
}

// RateStore is what rate limits need of the database beside RateTaker;
// pgstore.Store is one.
type RateStore interface {
	// SetRateLimit adds a limit, or replaces that of its scope, which it returns.
	// Workers see it with their next claim.
	SetRateLimit(ctx context.Context, limit RateLimit) (before *RateLimit, err error)

	// RemoveRateLimit removes the limit of a scope and its counts.
	RemoveRateLimit(ctx context.Context, scope Scope) (removed bool, err error)

	// RateLimits lists the limits of a canvas, or all, by canvas, module and name,
	// with their counts as they are now.
	RateLimits(ctx context.Context, canvas *CanvasID) ([]RateStatus, error)

	// CheckRate says what the limits of a scope say now, and counts nothing.
	CheckRate(ctx context.Context, scope Scope) (RateAnswer, error)

	// TakeLimited looks at no more than limit events of the scope behind a place, in
	// the order of places. Of these it makes due, marks as published, and returns, the
	// ones that a limit has put off and that nobody has touched since; those that are
	// claimed are due at once if that claim ends with OverLimit. next is the last place
	// looked at, the zero RatePlace when there are no more.
	TakeLimited(ctx context.Context, scope Scope, after RatePlace, limit int) (due []Notification, next RatePlace, err error)
}

// RatePlace is a place among the events of a canvas.
type RatePlace struct {
	Module string
	Name   string
	Event  EventID
}

// RateLimits changes, lists and checks rate limits. It is safe for concurrent use,
// here and in any number of processes at once; every operation may be repeated (I14).
type RateLimits struct {
	store RateStore
	queue *Queue
}

// NewRateLimits makes RateLimits; the queue publishes what may run again when a
// limit is raised or removed.
func NewRateLimits(store RateStore, queue *Queue) (*RateLimits, error) {
	if store == nil || queue == nil {
		return nil, errors.New("eventqueue.NewRateLimits: store and queue must not be nil")
	}
	return &RateLimits{store, queue}, nil
}

// Set adds a limit, or replaces that of its scope: from the next claim on. What is
// counted in the windows under way stays counted. When the new limit allows more than the
// old one, the events that wait for their turn are released; it returns how many. When
// that fails half-way the limit is set, and Release does the rest.
func (r *RateLimits) Set(ctx context.Context, limit RateLimit) (notified int, err error) {
	if limit.Mode == "" {
		limit.Mode = RateExact
	}
	if err := limit.Validate(); err != nil {
		return 0, fmt.Errorf("set the rate limit: %w", err)
	}
	before, err := r.store.SetRateLimit(ctx, limit)
	if err != nil {
		return 0, fmt.Errorf("set the rate limit of %s: %w", limit.rateScope(), err)
	}
	if before == nil || !limit.allows(*before) {
		return 0, nil
	}
	return r.Release(ctx, limit.Scope)
}

// Remove removes the limit of a scope, with its counts, and has the events that wait
// for their turn released. It returns whether the limit was there and how many events
// were notified. When it fails half-way the limit is gone, and repeating it does the
// rest.
func (r *RateLimits) Remove(ctx context.Context, scope Scope) (removed bool, notified int, err error) {
	if err := scope.ValidateRate(); err != nil {
		return false, 0, fmt.Errorf("remove the rate limit: %w", err)
	}
	if removed, err = r.store.RemoveRateLimit(ctx, scope); err != nil {
		return false, 0, fmt.Errorf("remove the rate limit of %s: %w", scope.rateScope(), err)
	}
	notified, err = r.Release(ctx, scope)
	return removed, notified, err
}

// Release has the events of a scope that a limit has put off made due and notified,
// however many they are, and returns how many. What a limit still holds back is put off
// once more. Set and Remove do this by themselves; it is for limits that were changed
// in SQL.
func (r *RateLimits) Release(ctx context.Context, scope Scope) (notified int, err error) {
	if err := scope.ValidateRate(); err != nil {
		return 0, fmt.Errorf("release the events that a rate limit has put off: %w", err)
	}
	for after := (RatePlace{}); ; {
		due, next, err := r.store.TakeLimited(ctx, scope, after, MaxPublish)
		if err != nil {
			return notified, fmt.Errorf("make the events of %s due that a rate limit has put off: %w", scope.rateScope(), err)
		}
		r.queue.publisher.publish(ctx, due)
		notified += len(due)
		if next == (RatePlace{}) {
			return notified, nil
		}
		after = next
	}
}

// List returns the limits of a canvas, or of all when it is nil, with their counts.
func (r *RateLimits) List(ctx context.Context, canvas *CanvasID) ([]RateStatus, error) {
	all, err := r.store.RateLimits(ctx, canvas)
	if err != nil {
		return nil, fmt.Errorf("list the rate limits: %w", err)
	}
	return all, nil
}

// Check tells an emitter whether an event of a handler on a canvas may run now: wait
// is 0, or else how long it is until one that is emitted now probably may, behind those that
// wait already. The zero handler asks about the limit of the canvas alone. It
// counts nothing, and nothing keeps an event that is emitted all the same from being
// taken in: it waits for its turn.
func (r *RateLimits) Check(ctx context.Context, canvas CanvasID, handler HandlerKey) (wait time.Duration, err error) {
	scope := Scope{Canvas: canvas, Module: handler.Module, Name: handler.Name}
	if err := scope.ValidateRate(); err != nil {
		return 0, fmt.Errorf("check the rate: %w", err)
	}
	answer, err := r.store.CheckRate(ctx, scope)
	if err != nil {
		return 0, fmt.Errorf("check the rate of %s: %w", scope.rateScope(), err)
	}
	for _, limit := range []*RateState{answer.Canvas, answer.Handler} {
		if limit != nil && limit.Room() == 0 {
			turn, _ := limit.turn(limit.Waiting)
			wait = max(wait, turn)
		}
	}
	return wait, nil
}

// rateScope names the scope of a limit in messages.
func (s Scope) rateScope() string {
	if s.WholeCanvas() {
		return "canvas " + s.Canvas.String()
	}
	return s.String()
}
