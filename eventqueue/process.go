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
func (w *Worker) start(work context.Context, l lookedAt, asked time.Time) {
	x := w.hold(work, l, asked)
	w.running.Add(1)
	go w.execute(x)
}

// hold takes a claimed event in hand: from here on its claim is renewed.
func (w *Worker) hold(work context.Context, l lookedAt, asked time.Time) *execution {
	d, f := l.delivery, l.found
	r, _ := w.handlers.find(&f.Event) // claimed, so known
	x := &execution{
		delivery:  d,
		policy:    r.policy,
		handler:   r.handler,
		takenOver: f.Facts.Lock == machine.LockStale,
		began:     time.Now(),
		renewed:   asked,
		leased:    asked,
		place:     f.Place,
	}
	x.run.Event, x.run.Attempt, x.run.worker, x.run.unique, x.run.inLine = f.Event, f.Attempt, w, f.Unique, f.InLine
	x.ctx = runContext{parent: withTraceparent(work, d.Traceparent), deadline: x.began.Add(x.policy.Timeout)}
	w.runs.add(x)
	w.config.Observe(Outcome{Event: d.Event, Canvas: f.Event.Canvas, Handler: f.Event.Handler(),
		Label: machine.Claimed, To: machine.Process, Attempt: f.Attempt, TakenOver: x.takenOver})
	return x
}

// execute runs the handler of a claimed event and hands the end in. What it needs
// of its goroutine's stack, beside the handler, fits the stack that goroutines
// begin with: to make it grow would cost as much as all the rest.
func (w *Worker) execute(x *execution) {
	defer w.running.Done()
	defer x.ctx.release()
	// What holds when the handler ends its goroutine (runtime.Goexit).
	verdict, err := machine.Exception, errNoReturn
	defer func() {
		if err != nil {
			w.logPanic(x, err)
		}
		f := x.finished(verdict, err)
		w.runs.end(x, func() { w.ends.put(f) })
	}()
	verdict, err = x.process()
}

// process is the state Process: it runs the handler and answers with a label
// that leaves it.
func (x *execution) process() (verdict machine.Label, err error) {
	verdict = machine.Exception //nolint:wastedassign // it stands when even looking at the error panics
	defer recovered(&err)
	if givenUp(x.takenOver, x.run.Retries, x.policy) {
		return machine.Exception, errAbandoned
	}
	err = call(&x.ctx, x.handler, &x.run)
	if err == nil {
		return verdictOf(nil, false), nil
	}
	stopping := errors.Is(context.Cause(&x.ctx), ErrStopping)
	if errors.Is(err, x.ctx.Err()) {
		err = errors.Join(context.Cause(&x.ctx), err)
	}
	return verdictOf(err, stopping), err
}

// givenUp tells whether an event has lost its last run with an expired lock, whose claim
// has counted that run as failed already (I9).
func givenUp(takenOver bool, retries int, policy Policy) bool {
	return takenOver && retries > *policy.MaxRetries
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
