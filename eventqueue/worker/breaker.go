package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

const (
	// breakerOpens is for how long a breaker is open at first. It doubles with each probe that fails, up to breakerOpensMost.
	breakerOpens     = 5 * time.Second
	breakerOpensMost = 30 * time.Second
	// breakerPatience is for how long a run waits for the results of others while it is in doubt whether what its handler calls
	// is there.
	breakerPatience = time.Second
	// probeGrace is for how long a probe is waited for beyond the time that its handler has.
	probeGrace = 5 * time.Second
)

// breaker is the circuit breaker of a handler, for all that it is registered for. It is closed while what the handler calls is there. After
// Policy.BreakerAfter runs in a row that ended with eventqueue.Unavailable it opens: the events of the handler
// are not claimed any more, and those that are claimed already go back, without a run, and without using an attempt. After a
// while one run probes whether the other side is back, which closes the breaker, or opens it for longer.
//
// Each worker has breakers of its own: one that cannot reach a server says nothing about the others.
type breaker struct {
	all *breakers
	// quiet: the last run that has ended had reached the other side, so that nothing has to be asked or recorded.
	quiet atomic.Bool
	// running counts the runs that have been let in.
	running atomic.Int64

	mu      sync.Mutex
	inARow  int           // runs that ended with Unavailable
	opened  int           // how often in a row
	until   time.Time     // for how long it is open; after that a run probes. Zero: it is closed
	probing time.Time     // until when a run is waited for that probes; zero: none does
	since   time.Time     // since when it is open, without the probes between
	cause   string        // the error of the run that has opened it last
	changed chan struct{} // is closed when a run has ended; nil: nobody waits
}

// guardedRun is a run as its breaker sees it.
type guardedRun struct {
	event *eventqueue.Event
	after int           // Policy.BreakerAfter
	limit time.Duration // how long the handler may take
}

// guarded is a handler with its breaker.
type guarded struct {
	eventqueue.Handler
	breaker *breaker
}

// breakers are the breakers of a worker. It is safe for concurrent use.
type breakers struct {
	part
	handlers *eventqueue.Handlers // each of them guarded
	known    eventqueue.HandlerSet
	opened   atomic.Int64 // how many are open, or have a probe
}

// newBreakers puts a breaker before each handler. What is registered several times, with as many runs until the breaker opens, is
// one handler, and calls one other side.
func newBreakers(p part, handlers *eventqueue.Handlers) *breakers {
	b := &breakers{part: p, known: handlers.Set()}
	b.handlers, _ = handlers.Wrap(func(h eventqueue.Handler) (eventqueue.Handler, error) { // wraps without an error
		return &guarded{Handler: h, breaker: &breaker{all: b}}, nil
	})
	type handler struct {
		same  eventqueue.Handler
		after int // Policy.BreakerAfter
	}
	shared := map[handler]*breaker{}
	share := func(at eventqueue.CanvasHandler) {
		r := b.registered(at.Canvas, at.Key)
		g, is := r.Handler.(*guarded)
		if !is {
			return
		}
		same, known := identity(g.Handler)
		if !known {
			return
		}
		of := handler{same, r.Policy.BreakerAfter}
		if shared[of] == nil {
			shared[of] = g.breaker
		}
		g.breaker = shared[of]
	}
	for _, key := range b.known.Everywhere {
		share(eventqueue.CanvasHandler{Key: key})
	}
	for _, at := range b.known.OnCanvas {
		share(at)
	}
	return b
}

// identity returns what is equal for registrations of one handler, and false if that is not known, as of functions.
func identity(h eventqueue.Handler) (same eventqueue.Handler, known bool) {
	if w, is := h.(*within); is {
		h = w.handler
	}
	return h, reflect.ValueOf(h).Comparable()
}

// breakerOf returns the breaker of a handler, or nil.
func breakerOf(r eventqueue.Registered) *breaker {
	if h, ok := r.Handler.(*guarded); ok && r.Policy.BreakerAfter > 0 {
		return h.breaker
	}
	return nil
}

// claimable returns the handlers whose events may be claimed: those whose breakers are closed, or want a probe.
func (b *breakers) claimable() eventqueue.HandlerSet {
	if b.opened.Load() == 0 { // nearly always
		return b.known
	}
	var set eventqueue.HandlerSet
	for _, key := range b.known.Everywhere {
		if b.openFor(eventqueue.CanvasID{}, key) == 0 {
			set.Everywhere = append(set.Everywhere, key)
		}
	}
	for _, on := range b.known.OnCanvas {
		if b.openFor(on.Canvas, on.Key) == 0 {
			set.OnCanvas = append(set.OnCanvas, on)
		}
	}
	return set
}

// breaker returns the breaker of a handler, or nil.
func (b *breakers) breaker(canvas eventqueue.CanvasID, key eventqueue.HandlerKey) *breaker {
	return breakerOf(b.registered(canvas, key))
}

func (b *breakers) registered(canvas eventqueue.CanvasID, key eventqueue.HandlerKey) eventqueue.Registered {
	r, _ := b.handlers.Lookup(&eventqueue.Event{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier})
	return r
}

// openFor returns how long the breaker of a handler is still open, and 0 if it is not.
func (b *breakers) openFor(canvas eventqueue.CanvasID, key eventqueue.HandlerKey) time.Duration {
	breaker := b.breaker(canvas, key)
	if breaker == nil || breaker.quiet.Load() {
		return 0
	}
	breaker.mu.Lock()
	defer breaker.mu.Unlock()
	if time.Until(breaker.probing) > 0 {
		return breakerPatience
	}
	return max(time.Until(breaker.until), 0)
}

// waits returns how long the events of a handler wait that this worker leaves out of its claims because of its breaker, and 0
// for a handler that it does not have.
func (b *breakers) waits(e *eventqueue.Event) time.Duration {
	if _, has := b.handlers.Lookup(e); !has {
		return 0
	}
	return max(b.openFor(e.Canvas, e.Handler()), time.Millisecond) // its time may be over by now
}

// OpenBreaker is a circuit breaker of a worker that is open.
type OpenBreaker struct {
	// Handler is whose it is; the zero Canvas stands for every one that has no handler of its own.
	Handler eventqueue.CanvasHandler
	// Since is when it opened, by the worker's clock; probes that failed since do not count.
	Since time.Time
	// Error is that of the run that failed last.
	Error string
}

// open returns the breakers that are open.
func (b *breakers) open() (open []OpenBreaker) {
	if b.opened.Load() == 0 {
		return nil
	}
	add := func(h eventqueue.CanvasHandler) {
		breaker := b.breaker(h.Canvas, h.Key)
		if breaker == nil {
			return
		}
		breaker.mu.Lock()
		defer breaker.mu.Unlock()
		if !breaker.until.IsZero() {
			open = append(open, OpenBreaker{h, breaker.since, storable(breaker.cause)})
		}
	}
	for _, key := range b.known.Everywhere {
		add(eventqueue.CanvasHandler{Key: key})
	}
	for _, h := range b.known.OnCanvas {
		add(h)
	}
	return open
}

// awayError is why an event goes back without a run, or without that the run counts.
type awayError struct {
	wait time.Duration
	text string
}

func (e *awayError) Error() string {
	return "the circuit breaker of the handler is open, since what it calls is away: " + e.text
}

// enter waits until a run may begin. The error is why it may not.
func (b *breaker) enter(ctx context.Context, g guardedRun) error {
	if b == nil {
		return nil
	}
	var patience <-chan time.Time
	for !b.quiet.Load() {
		changed, away := b.ask(g)
		switch {
		case away != nil:
			return away
		case changed == nil:
			return nil
		case patience == nil:
			timer := time.NewTimer(breakerPatience)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-patience:
			return b.enterInDoubt()
		case <-ctx.Done():
			return laterError{context.Cause(ctx)}
		}
	}
	b.running.Add(1)
	return nil
}

// ask lets a run in, or returns why not, or what it has to wait for. While it is in doubt whether the other side is there, no
// more runs are under way than may fail until the breaker opens.
func (b *breaker) ask(g guardedRun) (changed <-chan struct{}, away error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch left := time.Until(b.until); {
	case b.quiet.Load(): // by now: nobody may close changed any more
		b.running.Add(1)
		return nil, nil
	case left > 0:
		return nil, b.awayLocked(left)
	case !b.until.IsZero() && time.Until(b.probing) <= 0:
		b.probing = time.Now().Add(g.limit + probeGrace) // a handler may never return
		b.running.Add(1)
		return nil, nil
	case b.until.IsZero() && b.running.Load() < int64(max(g.after-b.inARow, 1)):
		b.running.Add(1)
		return nil, nil
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed, nil
}

// away returns why all events but a probe have to go back, and nil if the breaker is closed.
func (b *breaker) away() error {
	if b == nil || b.quiet.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return nil
	}
	return b.awayLocked(max(time.Until(b.until), breakerPatience))
}

// enterInDoubt is for a run that has waited for long enough: the other side takes its time, and need not be away.
func (b *breaker) enterInDoubt() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.until.IsZero() {
		return b.awayLocked(max(time.Until(b.until), breakerOpens))
	}
	b.running.Add(1)
	return nil
}

func (b *breaker) awayLocked(wait time.Duration) error {
	return &awayError{wait + b.all.config.Jitter(claimFailedDelay), b.cause}
}

// unavailable is implemented by the errors of eventqueue.Unavailable.
type unavailable interface{ Unavailable() time.Duration }

// leave records how a run has ended that enter has let in. unclear: its error says nothing about the other side. It returns an
// error in place of err if the breaker is open, as the run then says nothing about its event.
func (b *breaker) leave(g guardedRun, err error, unclear bool) error {
	if b == nil {
		return err
	}
	defer b.running.Add(-1)
	var away unavailable
	unreached := errors.As(err, &away)
	if b.quiet.Load() && !unreached {
		return err
	}
	text := ""
	if unreached {
		text, _ = textOf(err)
	}
	b.mu.Lock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	opened, closed, verdict := time.Duration(0), false, err
	switch {
	case unreached:
		opened, verdict = b.missedLocked(g, err, away.Unavailable(), text)
	case unclear:
		b.unclearLocked()
	default:
		closed = b.reachedLocked()
	}
	again := b.opened > 1
	b.mu.Unlock()
	if opened > 0 {
		b.all.logOpen(g, again, opened, err)
	}
	if closed {
		b.all.log.Info("what a handler calls is back: its circuit breaker is closed, and its events run again", zap.Stringer(logkey.Handler, g.event.Handler()))
	}
	return verdict
}

// unclearLocked has another run find out whether the other side is back, after the shortest interval between probes.
func (b *breaker) unclearLocked() {
	b.probing = time.Time{}
	if now := time.Now(); !b.until.IsZero() && !now.Before(b.until) {
		b.until = now.Add(breakerOpens)
	}
}

// reachedLocked closes the breaker, and reports whether it was open.
func (b *breaker) reachedLocked() (closed bool) {
	if closed = !b.until.IsZero(); closed {
		b.all.opened.Add(-1)
	}
	b.inARow, b.opened, b.until, b.probing, b.since, b.cause = 0, 0, time.Time{}, time.Time{}, time.Time{}, ""
	b.quiet.Store(true)
	return closed
}

// missedLocked counts a run that has not reached the other side, and opens the breaker if that is one too many: for how long
// is returned, and the verdict on the event. text is that of err.
func (b *breaker) missedLocked(g guardedRun, err error, retryAfter time.Duration, text string) (opened time.Duration, verdict error) {
	b.quiet.Store(false)
	b.inARow++
	now := time.Now()
	switch {
	case now.Before(b.until): // it was under way already
	case b.inARow >= g.after:
		if b.until.IsZero() {
			b.all.opened.Add(1)
			b.since = now
		}
		opened = min(breakerOpens<<min(b.opened, 10), breakerOpensMost)
		opened = max(opened+b.all.config.Jitter(opened/5), min(retryAfter, eventqueue.MaxRequeue))
		b.opened++
		b.until, b.probing, b.cause = now.Add(opened), time.Time{}, text
	default:
		return 0, err
	}
	return opened, b.awayLocked(b.until.Sub(now))
}

func (b *breakers) logOpen(g guardedRun, again bool, wait time.Duration, err error) {
	log := b.log.Warn
	if again { // a probe has failed
		log = b.log.Debug
	}
	log("what a handler calls is away: its circuit breaker is open, and its events wait, without using attempts, until a run that probes it succeeds",
		append([]zap.Field{zap.Stringer(logkey.Handler, g.event.Handler()), zap.Stringer(logkey.Canvas, g.event.Canvas), zap.Duration(logkey.Wait, wait),
			zap.String(logkey.Remedy, fmt.Sprintf("restore what the handler calls, or correct its address and rights; %d runs in a row have not reached it", g.after))},
			shownError(err)...)...)
}
