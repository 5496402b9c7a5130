package eventqueue

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// errAbandoned is the error of an event whose lock expired once more than it
// may be tried: every worker that ran it died, hung or lost the database.
var errAbandoned = errors.New("the lock expired during every run: the worker died, hung, or lost the database")

// errNoReturn is the error of a handler that left by runtime.Goexit.
var errNoReturn = errors.New("the handler ended its goroutine without returning")

// start runs a claimed event in a goroutine of its own.
func (w *Worker) start(work context.Context, d Delivery, f *Found, asked time.Time) {
	r, _ := w.handlers.find(&f.Event) // claimed, so known
	x := &execution{
		run:      &Run{Event: f.Event, Attempt: f.Attempt, worker: w},
		delivery: d,
		policy:   r.policy,
		handler:  r.handler,
		began:    time.Now(),
		renewed:  asked,
		leased:   asked,
	}
	takenOver := f.Facts.Lock == machine.LockStale
	x.deadline = x.began.Add(x.policy.Timeout)
	ctx, cancel := context.WithCancelCause(withTraceparent(work, d.Traceparent))
	x.cancel = cancel
	w.runs.add(x)
	w.config.Observe(Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(),
		Label: machine.Claimed, To: machine.Process, Attempt: f.Attempt, TakenOver: takenOver})

	w.running.Go(func() {
		defer cancel(nil)
		// What holds when the handler ends its goroutine (runtime.Goexit).
		verdict, err := machine.Exception, errNoReturn
		defer func() {
			w.logPanic(x, err)
			f := x.finished(verdict, err)
			w.runs.end(x, func() { w.ends <- f })
		}()
		verdict, err = x.process(ctx, takenOver)
	})
}

// process is the state Process: it runs the handler and answers with a label
// that leaves it.
func (x *execution) process(ctx context.Context, takenOver bool) (verdict machine.Label, err error) {
	verdict = machine.Exception //nolint:wastedassign // it stands when even looking at the error panics
	defer recovered(&err)
	// The claim of an expired lock has counted the failed run already (I9).
	if takenOver && x.run.Retries > *x.policy.MaxRetries {
		return machine.Exception, errAbandoned
	}
	ctx, cancel := context.WithTimeoutCause(ctx, x.policy.Timeout, ErrTimeout)
	defer cancel()
	err = call(ctx, x.handler, x.run)
	stopping := errors.Is(context.Cause(ctx), ErrStopping)
	if err != nil && errors.Is(err, ctx.Err()) {
		err = errors.Join(context.Cause(ctx), err)
	}
	return verdictOf(err, stopping), err
}

// call runs a handler and makes an error of its panic.
func call(ctx context.Context, h Handler, run *Run) (err error) {
	defer recovered(&err)
	return h.Handle(ctx, run)
}

// recovered is the one place where a panic of a handler's code is caught. It is
// deferred.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

func (w *Worker) logPanic(x *execution, err error) {
	var panicked *PanicError
	if errors.As(err, &panicked) {
		w.log.Error("a handler panicked", zap.Stringer(logEvent, x.run.ID), zap.Stringer(logHandler, x.run.Handler()),
			zap.Any("panic", panicked.Value), zap.ByteString(logStack, panicked.Stack))
	}
}
