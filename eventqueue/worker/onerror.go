package worker

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
)

const (
	// onErrorTakes is how long a call of OnError may take until its context ends.
	onErrorTakes = 10 * time.Second
	// leastOnError is how many calls of it may be under way at least.
	leastOnError = 100
)

// errorHook calls OnError, each time in a goroutine of its own, so that it delays nothing.
type errorHook struct {
	part
	calls chan struct{} // has an element for each call that is under way
}

func newErrorHook(p part) *errorHook {
	return &errorHook{p, make(chan struct{}, max(2*p.config.Concurrency, leastOnError))}
}

// start calls OnError, if there is one. base is what the context of the call is made of; it must not end.
func (h *errorHook) start(base context.Context, failed FailedRun) {
	if h.config.OnError == nil {
		return
	}
	select {
	case h.calls <- struct{}{}:
		go h.call(base, failed)
	default:
		h.log.Warn("OnError is not called for a failed run, as too many of its calls have not returned",
			zap.Stringer(logkey.Event, failed.Event.ID), zap.Int(logkey.Count, cap(h.calls)))
	}
}

func (h *errorHook) call(base context.Context, failed FailedRun) {
	defer func() { <-h.calls }()
	defer func() {
		if value := recover(); value != nil {
			h.log.Error("OnError panicked", zap.Stringer(logkey.Event, failed.Event.ID), shownValue("panic", value), zap.ByteString(logkey.Stack, debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(eventqueue.WithParent(base, &failed.Event), onErrorTakes)
	defer cancel()
	var panicked *eventqueue.PanicError
	if errors.As(failed.Err, &panicked) {
		failed.Stack = panicked.Stack
	}
	h.config.OnError(ctx, failed)
}

// stop waits until no call is under way, or ctx ends.
func (h *errorHook) stop(ctx context.Context) {
	for range cap(h.calls) {
		select {
		case h.calls <- struct{}{}:
		case <-ctx.Done():
			h.log.Warn("OnError has not returned before the worker stopped")
			return
		}
	}
}
