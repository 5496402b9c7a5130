package eventqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Handler runs events. It is called from many goroutines at once and, after a
// fault, more than once for one event: it must be idempotent.
//
// ctx ends when the handler's timeout passes, when the lock on the event is
// lost, and when the worker has to stop; context.Cause tells which
// (ErrTimeout, ErrLockLost, ErrStopping).
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

// Why the context of a run ended, as context.Cause tells it.
var (
	// ErrTimeout is the cause when the handler's timeout has passed.
	ErrTimeout = errors.New("the handler's timeout has passed")
	// ErrLockLost is the cause when the event's lock could not be renewed, and
	// the error of CompleteTx when another worker has claimed the event since.
	ErrLockLost = errors.New("the lock on the event is lost")
	// ErrStopping is the cause when the worker stops and its grace period is
	// over. What the handler returns then, but nil, uses no attempt.
	ErrStopping = errors.New("the worker is stopping")
)

// Permanent wraps an error to say that trying again is of no use: the event ends
// as FAILED at once.
func Permanent(err error) error { return &permanentError{err} }

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

// IsPermanent tells whether a handler that returned err would end its event as
// FAILED at once; see Permanent. It is for code between handlers and the worker.
func IsPermanent(err error) bool {
	var permanent *permanentError
	return errors.As(err, &permanent)
}

// Snooze is an error that asks for the event to be run again after d, without
// using an attempt. A negative d counts as 0.
func Snooze(d time.Duration) error { return &snoozeError{max(d, 0)} }

type snoozeError struct{ delay time.Duration }

func (e *snoozeError) Error() string { return fmt.Sprintf("snoozed for %s", e.delay) }

// SnoozeOf returns for how long a handler that returned err would have its event
// wait, and whether it would; see Snooze. A Permanent error is none.
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

// Error tells what the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

// Backoff tells how long to wait before retry number n, counted from 1.
type Backoff func(n int) time.Duration

// Exponential waits base before the first retry and doubles the wait for each
// further one, up to limit, with a fifth of it as jitter to either side. A base
// of less than a nanosecond counts as that, and a limit below base as base.
func Exponential(base, limit time.Duration) Backoff {
	base = min(max(base, 1), maxWait)
	limit = min(max(limit, base), maxWait)
	return func(n int) time.Duration {
		wait := base
		for ; n > 1 && wait < limit; n-- {
			wait = min(2*wait, limit)
		}
		return wait - wait/5 + rand.N(wait/5*2+1)
	}
}

// Policy is how a handler is run. The zero value is the documented behaviour.
type Policy struct {
	// Timeout bounds one run. Default (0): 1 minute.
	Timeout time.Duration

	// MaxRetries is how often a failed event is tried again. Default (nil): 2.
	MaxRetries *int

	// Backoff is the wait before a retry. Default (nil): Exponential(10 s, 1 h).
	Backoff Backoff

	// HoldLine is how long an event with an OrderingKey holds the next one back
	// when it is put off, by a retry or a snooze: with a longer delay, others of
	// its key go first, and it takes its place again when it is due. Default
	// (nil): for however long, so that the order is kept. 0: it never holds it.
	HoldLine *time.Duration
}

func (p Policy) withDefaults() Policy {
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
	return p
}

// Validate names the first field that makes no sense.
func (p Policy) Validate() error {
	if p.Timeout < 0 {
		return fmt.Errorf("Timeout is %s: it must not be negative", p.Timeout)
	}
	if p.MaxRetries != nil && *p.MaxRetries < 0 {
		return fmt.Errorf("MaxRetries is %d: it must not be negative; 0 means one run only", *p.MaxRetries)
	}
	if p.HoldLine != nil && *p.HoldLine < 0 {
		return fmt.Errorf("HoldLine is %s: it must not be negative; 0 means that a failed event never holds the next one back", *p.HoldLine)
	}
	return nil
}

// Handlers says which code runs which events. Register before the worker runs;
// it is not safe for concurrent use.
type Handlers struct {
	everywhere map[HandlerKey]registered
	onCanvas   map[CanvasHandler]registered
}

type registered struct {
	handler Handler
	policy  Policy
}

// NewHandlers returns an empty registry.
func NewHandlers() *Handlers {
	return &Handlers{everywhere: map[HandlerKey]registered{}, onCanvas: map[CanvasHandler]registered{}}
}

// Register makes h the handler of key on every canvas that has none of its own.
// It refuses a key that is taken, a key that could not be emitted, and a policy
// that makes no sense.
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

func newRegistered(key HandlerKey, h Handler, policy Policy) (registered, error) {
	if h == nil {
		return registered{}, fmt.Errorf("handler %s is nil", key)
	}
	if field, err := CheckHandler(key); err != nil {
		return registered{}, fmt.Errorf("handler %s: %s: %w", key, field, err)
	}
	if err := policy.Validate(); err != nil {
		return registered{}, fmt.Errorf("handler %s: %w", key, err)
	}
	return registered{h, policy.withDefaults()}, nil
}

func (hs *Handlers) find(e *Event) (registered, bool) {
	if r, ok := hs.onCanvas[CanvasHandler{e.Canvas, e.Handler()}]; ok {
		return r, true
	}
	r, ok := hs.everywhere[e.Handler()]
	return r, ok
}

// Known lists what is registered, for the claim.
func (hs *Handlers) known() Known {
	var k Known
	for key := range hs.everywhere {
		k.Everywhere = append(k.Everywhere, key)
	}
	for at := range hs.onCanvas {
		k.OnCanvas = append(k.OnCanvas, at)
	}
	return k
}
