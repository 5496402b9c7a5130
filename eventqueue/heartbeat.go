package eventqueue

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// heartbeat renews, every interval until ctx ends, the claims of all events
// that have run for so long already, with one statement; and extends the leases
// of their notifications. With nothing to renew it asks nobody anything.
//
// A claim is believed for LockTimeout from the moment its last successful
// renewal was asked for, by this machine's monotonic clock: the database wrote
// locked_at later than that, so the belief ends no later than the lock.
func (w *Worker) heartbeat(ctx context.Context) {
	interval := min(w.config.Heartbeat, w.config.Lease/3)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.renewClaims(ctx, interval)
			w.extendLeases(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// renewClaims renews what would be older than Heartbeat at the next tick. It
// leaves out runs past their timeout: a handler that ignores its
// context loses its lock, and another worker may take the event over.
func (w *Worker) renewClaims(ctx context.Context, interval time.Duration) {
	now := time.Now()
	due := w.runs.pick(func(x *execution) bool {
		return now.Sub(x.renewed)+interval > w.config.Heartbeat && now.Before(x.deadline)
	})
	if len(due) == 0 {
		return
	}
	claims := make([]Claim, len(due))
	for i, x := range due {
		claims[i] = x.run.claim()
	}
	renewCtx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	lost, err := w.beats.Renew(renewCtx, claims)
	if err != nil {
		w.log.Warn("could not renew claims", zap.Int(logCount, len(claims)), zap.Error(err))
		w.giveUpExpired(due)
		return
	}
	gone := make(map[EventID]bool, len(lost))
	for _, id := range lost {
		gone[id] = true
	}
	w.runs.update(due, func(x *execution) {
		if gone[x.run.ID] {
			x.cancel(ErrLockLost)
		} else {
			x.renewed = now
		}
	})
}

// giveUpExpired cancels the runs whose lock may have expired.
func (w *Worker) giveUpExpired(due []*execution) {
	now := time.Now()
	w.runs.update(due, func(x *execution) {
		if now.Sub(x.renewed) >= w.config.LockTimeout {
			x.cancel(ErrLockLost)
		}
	})
}

// extendLeases keeps the notifications of running events from being shown to
// others, so that a crash, and not a long run, brings them out again.
func (w *Worker) extendLeases(ctx context.Context) {
	now := time.Now()
	due := w.runs.pick(func(x *execution) bool {
		return now.Sub(x.leased) >= w.config.Lease/3 && now.Before(x.deadline)
	})
	if len(due) == 0 {
		return
	}
	deliveries := make([]Delivery, len(due))
	for i, x := range due {
		deliveries[i] = x.delivery
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := w.receiver.Requeue(ctx, deliveries, w.config.Lease); err != nil {
		w.log.Warn("could not extend the leases of notifications; they come again early",
			zap.Int(logCount, len(deliveries)), zap.Error(err))
		return
	}
	w.runs.update(due, func(x *execution) { x.leased = now })
}
