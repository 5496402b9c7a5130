package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/logkey"
)

// bounded is ctx until a bound of the worker's configuration is reached. It is called before
// anything takes slots. bound is nil without a bound on events.
func (w *Worker) bounded(ctx context.Context) (bounded context.Context, bound *budget, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if n := w.config.MaxEvents; n > 0 {
		bound = newBudget(n, func() {
			w.log.Info("the worker has reached its maximum number of events; it stops", zap.Int(logkey.MaxEvents, n))
			cancel()
		})
	}
	if w.config.TTL <= 0 {
		return ctx, bound, cancel
	}
	timer := time.AfterFunc(w.config.TTL, func() {
		w.log.Info("the worker has reached its maximum time; it stops", zap.Duration(logkey.TTL, w.config.TTL))
		cancel()
	})
	return ctx, bound, func() { timer.Stop(); cancel() }
}
