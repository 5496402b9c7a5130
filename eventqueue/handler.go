package eventqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Handler runs events. It is called from many goroutines at once and, after a
// fault, more than once for one event: it must be idempotent.
//
// ctx ends when the handler's timeout passes, when the lock on the event is lost, when the worker has
// to stop, and when an operator cancels the event; context.Cause returns which (ErrTimeout,
// ErrLockLost, ErrStopping, ErrCancelled).
//
// nil completes the event. Permanent ends it as FAILED. Snooze brings it back
// later. Any other error, and a panic, is a failed attempt.
type Handler interface {
	Handle(ctx context.Context, run *Run) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, run *Run) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, run *Run) error { return f(ctx, run) }

// Why the context of a run ended, as returned by context.Cause.
var (
	// ErrTimeout is the cause when the handler's timeout has passed.
	ErrTimeout = errors.New("the handler's timeout has passed")
	// ErrLockLost is the cause when the event's lock could not be renewed, and
	// the error of CompleteTx when another worker has claimed the event since.
	ErrLockLost = errors.New("the lock on the event is lost")
	// ErrStopping is the cause when the worker stops and its grace period is over. Any error that
	// the handler returns then uses no attempt.
	ErrStopping = errors.New("the worker is stopping")
	// ErrCancelled is the cause when an operator has cancelled the event. Any error that the handler
	// returns then ends the event as CANCELLED, also one of Permanent or Snooze; nil, and CompleteTx,
	// complete it as always.
	ErrCancelled = errors.New("the event was cancelled while it ran")
)

// Permanent wraps an error that no retry can fix: the event ends as FAILED at once.
func Permanent(err error) error { return &permanentError{cmp.Or(err, errors.New("Permanent(nil)"))} }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// IsPermanent reports whether a handler that returned err would end its event as FAILED at once;
// see Permanent. It is for code between handlers and the worker.
func IsPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

// Snooze is an error that asks for the event to be run again after d, without
// using an attempt. A negative d counts as 0. The handler's Policy says how long
// the wait is at least, and how often an event may be snoozed in a row: a snooze
// beyond that is a failed attempt.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.delay) }

// SnoozeOf returns how long err asks to snooze its event, and whether it does; see Snooze. A
// Permanent error is no snooze.
func SnoozeOf(err error) (d time.Duration, snoozed bool) {
	var snooze *snoozeError
	if IsPermanent(err) || !errors.As(err, &snooze) {
		return 0, false
	}
	return snooze.delay, true
}

// PanicError is the error of a run whose handler panicked.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the value that the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Backoff returns how long to wait before retry number n, counted from 1.
type Backoff func(n int) time.Duration

// MaxWait bounds the wait that a handler or its policy may ask for: about ten years.
const MaxWait = 10 * 366 * 24 * time.Hour

// Exponential waits base before the first retry and doubles the wait for each
// further one, up to limit, with a fifth of it as jitter to either side. A base
// of less than a nanosecond counts as that, and a limit below base as base.
func Exponential(base, limit time.Duration) Backoff {
	base = min(max(base, 1), MaxWait)
	limit = min(max(limit, base), MaxWait)
	return func(n int) time.Duration {
		wait := base
		for ; n > 1 && wait < limit; n-- {
			wait = min(2*wait, limit)
		}
		return wait - wait/5 + rand.N(wait/5*2+1)
	}
}

// Policy is how a handler is run. The zero value has the defaults given below.
type Policy struct {
	// Timeout bounds one run. Default (0): 1 minute.
	Timeout time.Duration

	// MaxRetries is how often a failed event is tried again. Default (nil): 2.
	MaxRetries *int

	// Backoff is the wait before a retry. Default (nil): Exponential(10 s, 1 h).
	Backoff Backoff

	// OrderHold is how long an event with an OrderingKey holds the next one back when it is put
	// off, by a retry or a snooze: after a longer delay than that, the others of its key go first,
	// and it joins them again when it is due. Default (nil): without a limit, so that the order is
	// kept. 0: it never holds the next one back.
	OrderHold *time.Duration

	// MaxSnoozes is how often an event may be snoozed in a row, so that an event which is always
	// put off ends eventually. The snooze after that is a failed attempt, which leads to a retry or
	// to FAILED; then the count begins anew. 0: each snooze is a failed attempt. Default (nil):
	// 100; at most MostSnoozes.
	MaxSnoozes *int

	// MinSnooze is how long a snooze lasts at least. The second one in a row lasts
	// twice as long at least, the third one three times, up to sixty times. Default
	// (0): 1 s.
	MinSnooze time.Duration

	// BreakerAfter is after how many runs in a row that ended with [Unavailable] the handler's circuit
	// breaker opens in a worker: its events wait there, and no attempt of theirs is used, until a run that probes
	// what the handler calls succeeds. Probes are 5 s to half a minute apart. Until the first run has succeeded, and while runs
	// fail, no more than this run at once, for as long as they take no more than a second. Default (0): it
	// has no breaker. The targets of a handlers file have one after 20. A comparable handler, such as a pointer, that is registered
	// several times with the same number has one breaker for all of them.
	BreakerAfter int
}

// MostSnoozes is the largest MaxSnoozes of a Policy, and the longest MinSnooze is a
// minute.
const (
	MostSnoozes   = 30_000
	mostMinSnooze = time.Minute
	// snoozeGrows is how often MinSnooze grows.
	snoozeGrows = 60
)

// WithDefaults returns the policy with every unset field at its default.
func (p Policy) WithDefaults() Policy {
	if p.Timeout == 0 {
		p.Timeout = time.Minute
	}
	if p.MaxRetries == nil {
		retries := 2
		p.MaxRetries = &retries
	}
	if p.Backoff == nil {
		p.Backoff = Exponential(10*time.Second, time.Hour)
	}
	if p.MaxSnoozes == nil {
		p.MaxSnoozes = new(100)
	}
	p.MinSnooze = cmp.Or(p.MinSnooze, time.Second)
	return p
}

// Validate names the first invalid field.
func (p Policy) Validate() error {
	if p.Timeout < 0 {
		return fmt.Errorf("Timeout is %s: it must not be negative", p.Timeout)
	}
	if p.MaxRetries != nil && *p.MaxRetries < 0 {
		return fmt.Errorf("MaxRetries is %d: it must not be negative; 0 means one run only", *p.MaxRetries)
	}
	if p.OrderHold != nil && *p.OrderHold < 0 {
		return fmt.Errorf("OrderHold is %s: it must not be negative; 0 means that a failed event never holds the next one back", *p.OrderHold)
	}
	if p.MaxSnoozes != nil && (*p.MaxSnoozes < 0 || *p.MaxSnoozes > MostSnoozes) {
		return fmt.Errorf("MaxSnoozes is %d: it must be from 0 to %d; 0 means that a snooze is a failed attempt", *p.MaxSnoozes, MostSnoozes)
	}
	if p.BreakerAfter < 0 {
		return fmt.Errorf("BreakerAfter is %d: it must not be negative; 0 means no circuit breaker", p.BreakerAfter)
	}
	if p.MinSnooze < 0 || p.MinSnooze > mostMinSnooze {
		return fmt.Errorf("MinSnooze is %s: it must be from 0 to %s", p.MinSnooze, mostMinSnooze)
	}
	return nil
}

// SnoozeFor is how long an event waits that has been snoozed n times in a row before,
// when its handler asks for wait.
func (p *Policy) SnoozeFor(wait time.Duration, n int) time.Duration {
	return max(wait, p.MinSnooze*time.Duration(min(n+1, snoozeGrows)))
}

// Handlers is the registry of handlers. Register them before the worker runs; it is not safe for
// concurrent use.
type Handlers struct {
	everywhere map[HandlerKey]Registered
	onCanvas   map[CanvasHandler]Registered
}

// Registered is a handler, and how its events are run.
type Registered struct {
	Handler Handler
	Policy  Policy // with its defaults
}

// NewHandlers returns an empty registry.
func NewHandlers() *Handlers {
	return &Handlers{everywhere: map[HandlerKey]Registered{}, onCanvas: map[CanvasHandler]Registered{}}
}

// Register makes h the handler of key on every canvas that has no handler of its own for it. It
// refuses a key that is already registered, a key that could not be emitted, and an invalid policy.
func (hs *Handlers) Register(key HandlerKey, h Handler, policy Policy) error {
	r, err := newRegistered(key, h, policy)
	if err != nil {
		return err
	}
	if _, taken := hs.everywhere[key]; taken {
		return fmt.Errorf("handler %s is registered twice", key)
	}
	hs.everywhere[key] = r
	return nil
}

// RegisterOn is Register for one canvas.
func (hs *Handlers) RegisterOn(canvas CanvasID, key HandlerKey, h Handler, policy Policy) error {
	r, err := newRegistered(key, h, policy)
	if err != nil {
		return err
	}
	at := CanvasHandler{canvas, key}
	if _, taken := hs.onCanvas[at]; taken {
		return fmt.Errorf("handler %s of canvas %s is registered twice", key, canvas)
	}
	hs.onCanvas[at] = r
	return nil
}

func newRegistered(key HandlerKey, h Handler, policy Policy) (Registered, error) {
	if h == nil {
		return Registered{}, fmt.Errorf("handler %s is nil", key)
	}
	if field, err := CheckHandler(key); err != nil {
		return Registered{}, fmt.Errorf("handler %s: %s: %w", key, field, err)
	}
	if err := policy.Validate(); err != nil {
		return Registered{}, fmt.Errorf("handler %s: %w", key, err)
	}
	return Registered{h, policy.WithDefaults()}, nil
}

// Wrap returns the handlers, each replaced by what wrap returns for it, with their policies. An error of wrap
// ends it, and is returned with the key.
func (hs *Handlers) Wrap(wrap func(Handler) (Handler, error)) (_ *Handlers, err error) {
	wrapped := NewHandlers()
	for key, r := range hs.everywhere {
		if r.Handler, err = wrap(r.Handler); err != nil {
			return nil, fmt.Errorf("handler %s: %w", key, err)
		}
		wrapped.everywhere[key] = r
	}
	for at, r := range hs.onCanvas {
		if r.Handler, err = wrap(r.Handler); err != nil {
			return nil, fmt.Errorf("handler %s of canvas %s: %w", at.Key, at.Canvas, err)
		}
		wrapped.onCanvas[at] = r
	}
	return wrapped, nil
}

// Lookup returns the handler that runs an event: the one registered for its canvas, or else the one
// for all canvases.
func (hs *Handlers) Lookup(e *Event) (Registered, bool) {
	if r, ok := hs.onCanvas[CanvasHandler{e.Canvas, e.Handler()}]; ok {
		return r, true
	}
	r, ok := hs.everywhere[e.Handler()]
	return r, ok
}

// Set returns the keys of all handlers. A worker passes them to its claims.
func (hs *Handlers) Set() HandlerSet {
	var k HandlerSet
	for key := range hs.everywhere {
		k.Everywhere = append(k.Everywhere, key)
	}
	for at := range hs.onCanvas {
		k.OnCanvas = append(k.OnCanvas, at)
	}
	return k
}

// HandlerSet lists the handlers that a worker has.
type HandlerSet struct {
	Everywhere []HandlerKey
	OnCanvas   []CanvasHandler
}

// Has reports whether the handler is in the set, for every canvas or for this one.
func (s HandlerSet) Has(canvas CanvasID, key HandlerKey) bool {
	return slices.Contains(s.Everywhere, key) || slices.Contains(s.OnCanvas, CanvasHandler{Canvas: canvas, Key: key})
}
