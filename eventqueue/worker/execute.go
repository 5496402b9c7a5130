package worker

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/internal/attributes"
	"eventsv2/internal/envelope"
	"eventsv2/internal/invoke"
	"eventsv2/internal/logkey"
	"eventsv2/internal/trace"
)

// errAbandoned is the error of an event whose lock expired during the last run that it
// was allowed.
var errAbandoned = errors.New("the event died alone: the lock expired during the last run that was allowed, and no other suspect ran beside it; " +
	"its worker died, hung, or lost the database")

// errLost is the error of a run that was lost like that, and whose event is tried again.
var errLost = errors.New("the event died alone: its lock expired, as its worker died, hung, or lost the database")

// errNoReturn is the error of a handler that left by runtime.Goexit.
var errNoReturn = errors.New("the handler ended its goroutine without returning")

// executor runs the handlers of claimed events.
type executor struct {
	part
	queue       *eventqueue.Queue
	handlers    *eventqueue.Handlers
	reporter    *reporter
	runs        *runs
	completions *batcher[*completedRun]
	reported    *batcher[*execution] // see progressWriter; nil: nobody writes
	values      *valueReader
	hook        *errorHook
	// ended is called when the end of a suspect is written.
	ended func(*execution)
	// running counts the goroutines of handlers.
	running sync.WaitGroup
}

// start runs a claimed event in a goroutine of its own.
func (e *executor) start(work context.Context, l candidate, asked time.Time) {
	x := e.hold(work, l, asked, true)
	e.running.Add(1)
	go e.execute(x)
}

// startHeld is start for an event that waited for its run.
func (e *executor) startHeld(x *execution) {
	e.runs.update([]*execution{x}, func(x *execution) {
		x.waits, x.began = false, time.Now()
		x.ctx.extend(x.began.Add(x.limit))
	})
	e.running.Add(1)
	go e.execute(x)
}

// hold makes an execution of a claimed event. From here on the claim of an event that is to run is
// renewed, which records the run as begun. The claim of an event that is released unrun is not: it
// may lose its lock while that is written, but no attempt (I18).
func (e *executor) hold(work context.Context, l candidate, asked time.Time, runs bool) *execution {
	d, f := l.delivery, l.result
	// Emitters of versions that knew no attributes sent the trace context with the notification only.
	d.Traceparent = cmp.Or(f.Event.Attributes[attributes.Traceparent], d.Traceparent)
	r, _ := e.handlers.Lookup(&f.Event) // claimed, so the handler is known
	x := &execution{
		executor:  e,
		unique:    f.Unique,
		grouped:   f.Grouped,
		delivery:  d,
		policy:    r.Policy,
		handler:   r.Handler,
		breaker:   breakerOf(r),
		takenOver: f.Facts.Lock == machine.LockStale,
		lostRun:   f.LostRun,
		company:   f.Company,
		limit:     r.Policy.Timeout + e.values.takes(f),
		began:     time.Now(),
		claimed:   asked,
		waited:    f.waited(),
		renewed:   asked,
		leased:    asked,
		rowID:     f.RowID,
		unrun:     !runs,
		waits:     runs && e.isSuspect(f),

		valueApart: f.ValueApart,
	}
	x.run.Event, x.run.Attempt, x.run.ClaimID, x.run.Snoozes = f.Event, f.Attempt, f.ClaimID, f.Snoozes
	x.run.Completer, x.run.Suspect = x, f.Company > 0
	x.ctx = runContext{parent: trace.With(work, d.Traceparent), event: &x.run.Event, deadline: x.began.Add(x.limit)}
	if f.Cancelled {
		x.ctx.end(eventqueue.ErrCancelled)
	}
	out := Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(),
		Label: machine.Claimed, To: machine.Process, Attempt: f.Attempt, ClaimID: f.ClaimID, TakenOver: x.takenOver, Traceparent: d.Traceparent}
	e.config.Observe(out)
	e.reporter.logOutcome(zap.DebugLevel, "event claimed", &out)
	e.runs.add(x)
	return x
}

// execute runs the handler of a claimed event and submits the completed run. Apart from the
// handler, it fits the stack that goroutines begin with: growing it would cost as much as
// everything else.
func (e *executor) execute(x *execution) {
	defer e.running.Done()
	defer x.ctx.release()
	// The verdict when the handler ends its goroutine (runtime.Goexit).
	verdict, err := machine.Exception, errNoReturn
	defer func() {
		if err != nil {
			e.logPanic(x, err)
			e.logTooLate(x, err)
		}
		if errors.Is(err, errNoReturn) {
			err = x.leave(err)
		}
		f := x.decideRun(verdict, err)
		e.runs.submit(x, func() { e.completions.put(f) })
	}()
	if !e.mayHold(x) {
		e.runs.update([]*execution{x}, func(x *execution) { x.unrun = true })
		verdict, err = machine.Released, eventqueue.ErrLockLost
		return
	}
	x.calls.Store(true)
	verdict, err = x.processMarked(x.mark())
}

// mayHold reports whether the claim of a run that is about to begin may still be valid. When a
// process or its machine was suspended, claims that it holds may have expired meanwhile: their
// events are released without a run, unless another worker has claimed them (I3).
func (e *executor) mayHold(x *execution) bool {
	now := time.Now()
	if elapsed(x.claimed, now) < e.config.LockTimeout/8 { // as nearly always
		return true
	}
	return elapsed(e.runs.renewedAt(x), now) < e.config.LockTimeout
}

// elapsed returns how much later now is, by the clock that shows more: the monotonic clock stands
// still while a machine is suspended, and the wall clock may be set back.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}

// processMarked is process with a mark in its stack.
//
//go:noinline
func (x *execution) processMarked(stackMark) (machine.Label, error) { return x.process() }

// process is the state Process: it runs the handler and returns the label of the arrow that leaves
// it.
func (x *execution) process() (verdict machine.Label, err error) {
	verdict = machine.Exception //nolint:wastedassign // it holds when even reading the error panics
	defer invoke.Recovered(&err)
	cancelled := errors.Is(x.ctx.endCause(), eventqueue.ErrCancelled)
	if !cancelled && attemptsExhausted(x.lostRun, x.run.Retries, x.policy) {
		return machine.Exception, errAbandoned
	}
	if x.lostRun {
		x.executor.hook.start(x.ctx.parent, x.lostBefore())
	}
	if cancelled {
		return machine.Cancelled, eventqueue.ErrCancelled
	}
	if x.valueApart {
		if err := x.executor.values.read(&x.ctx, &x.run); err != nil {
			return machine.Released, err
		}
	}
	run := &x.run
	if envelope.Is(run.Value) {
		if run, err = decrypted(run, x.executor.config.OpenValue); err != nil {
			return machine.Exception, err
		}
		x.ctx.event = &run.Event
		x.ctx.log.End() // its lines could have parts of the value in the clear
	}
	if err := x.breaker.enter(&x.ctx, x.guarded()); err != nil {
		return machine.Released, err
	}
	err = x.leave(invoke.Handler(&x.ctx, x.handler, run))
	if err == nil {
		return verdictOf(nil, nil), nil
	}
	err = x.withCause(err)
	return verdictOf(err, context.Cause(&x.ctx)), err
}

// withCause adds to an error of the run's context why that has ended: a heartbeat may find before the handler does that the lock is lost.
func (x *execution) withCause(err error) error {
	if cause := context.Cause(&x.ctx); errors.Is(err, x.ctx.Err()) && !errors.Is(err, cause) {
		return errors.Join(cause, err)
	}
	return err
}

func (x *execution) guarded() guardedRun {
	return guardedRun{&x.run.Event, x.policy.BreakerAfter, x.limit}
}

// leave is that of its breaker. A run that was lost, or whose context has ended for a reason of the worker's, says nothing about
// what its handler calls. But one that was lost though it ran alone has broken the connections itself, or found them broken.
func (x *execution) leave(err error) error {
	unclear := false
	if err != nil {
		cause := x.ctx.endCause()
		unclear = isLost(err) || errors.Is(err, errNoReturn) || cause != nil && !errors.Is(cause, eventqueue.ErrTimeout)
		if isLost(err) && x.together.Load() == 1 {
			err = eventqueue.Unavailable(err, 0)
		}
	}
	return x.breaker.leave(x.guarded(), err, unclear)
}

// lostBefore is the run before x, which was lost with its worker, and which the claim of x has counted as failed.
func (x *execution) lostBefore() FailedRun {
	event := x.run.Event
	event.Retries--
	return FailedRun{Event: event, Attempt: x.run.Attempt - 1, Err: errLost}
}

// exhausted is attemptsExhausted for a claimed event.
func (e *executor) exhausted(f *ClaimResult) bool {
	r, _ := e.handlers.Lookup(&f.Event)
	return attemptsExhausted(f.LostRun, f.Event.Retries, r.Policy)
}

// isSuspect reports whether a claimed event runs apart from others, see suspects. An event that does not run any more ends
// without that.
func (e *executor) isSuspect(f *ClaimResult) bool {
	return f.Company > 0 && !f.Cancelled && !e.exhausted(f)
}

// attemptsExhausted reports whether an event has lost its last permitted run with an expired lock.
// The claim that took the lock over has already counted that run as failed (I9).
func attemptsExhausted(lostRun bool, retries int, policy eventqueue.Policy) bool {
	return lostRun && retries > *policy.MaxRetries
}

func (e *executor) logPanic(x *execution, err error) {
	var panicked *eventqueue.PanicError
	if errors.As(err, &panicked) {
		e.log.Error("a handler panicked", zap.Stringer(logkey.Event, x.run.ID), zap.Stringer(logkey.Handler, x.run.Handler()),
			shownValue("panic", panicked.Value), zap.ByteString(logkey.Stack, panicked.Stack))
	}
}

// logTooLate logs an error that has come after the event was completed, and changes nothing.
func (e *executor) logTooLate(x *execution, err error) {
	if x.completed.Load() {
		e.log.Warn("a handler returned an error after its CompleteTx had completed the event, which stays completed",
			append([]zap.Field{zap.Stringer(logkey.Event, x.run.ID), zap.Stringer(logkey.Canvas, x.run.Canvas), zap.Stringer(logkey.Handler, x.run.Handler())}, shownError(err)...)...)
	}
}

// verdictOf returns the label for an error of a handler. cause is why its context had ended; nil: it
// had not.
func verdictOf(err, cause error) machine.Label {
	if err == nil {
		return machine.ExecutesToCompletion
	}
	switch _, snoozed := eventqueue.SnoozeOf(err); {
	case errors.Is(cause, eventqueue.ErrCancelled):
		return machine.Cancelled
	case errors.As(err, new(*awayError)):
		return machine.Released
	case eventqueue.IsPermanent(err):
		return machine.FailedForGood
	case snoozed:
		return machine.Snoozed
	case errors.Is(cause, eventqueue.ErrStopping):
		return machine.Released
	default:
		return machine.Exception
	}
}

// releaseUnrun releases a claimed event that was not run, through the completer, which writes many
// at once.
func (e *executor) releaseUnrun(x *execution, verdict machine.Label, why error) {
	defer x.ctx.release()
	f := x.decideRun(verdict, why)
	e.runs.submit(x, func() { e.completions.put(f) })
}

// stop waits for the running handlers, cancels them when grace ends, and abandons those that do not
// return even then. After it, no more runs are submitted.
func (e *executor) stop(grace context.Context) {
	idle := make(chan struct{})
	go func() {
		e.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-grace.Done():
		e.runs.stop(eventqueue.ErrStopping)
		select {
		case <-idle:
		case <-time.After(abandonAfter):
		}
	}
	e.runs.abandon(func(x *execution) {
		e.log.Warn("a handler does not return though its context has ended; its event is released",
			zap.Stringer(logkey.Event, x.run.ID), zap.Stringer(logkey.Handler, x.run.Handler()))
		e.completions.put(x.decideRun(machine.Released, eventqueue.ErrStopping))
	})
}
