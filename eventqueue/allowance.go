package eventqueue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// allowance counts how many more events a bounded worker may take. What is
// handed out comes back when it was not used for an event; when all has been
// used, by events that have ended, the bound is reached.
type allowance struct {
	reached func() // called once

	mu    sync.Mutex
	left  int // that nobody has
	out   int // handed out: to pulls and claims under way, and to events in hand
	freed chan struct{}
}

func newAllowance(n int, reached func()) *allowance {
	return &allowance{reached: reached, left: n, freed: make(chan struct{})}
}

// take waits until something is left and takes as much as is, up to most.
func (a *allowance) take(ctx context.Context, most int) (int, error) {
	for {
		a.mu.Lock()
		n, freed := min(a.left, most), a.freed
		a.left -= n
		a.out += n
		a.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// giveBack returns what was not used for an event.
func (a *allowance) giveBack(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out -= n
	a.left += n
	close(a.freed)
	a.freed = make(chan struct{})
}

// use is for events that were claimed and have ended.
func (a *allowance) use(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out -= n
	if a.left == 0 && a.out == 0 && n > 0 {
		a.reached()
	}
}

// bounded is ctx until a bound of the worker's configuration is reached. It is
// called before anything takes slots.
func (w *Worker) bounded(ctx context.Context) (bounded context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if n := w.config.MaxEvents; n > 0 {
		bound := newAllowance(n, func() {
			w.log.Info("the worker has had as many events as it may; it stops", zap.Int(logMaxEvents, n))
			cancel()
		})
		w.slots.bound, w.spare.bound = bound, bound
	}
	if w.config.TTL <= 0 {
		return ctx, cancel
	}
	timer := time.AfterFunc(w.config.TTL, func() {
		w.log.Info("the worker's time is over; it stops", zap.Duration(logTTL, w.config.TTL))
		cancel()
	})
	return ctx, func() { timer.Stop(); cancel() }
}
