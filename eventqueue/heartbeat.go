package eventqueue

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

// heartbeat renews, every interval until ctx ends, the claims of all events
// that have been held for so long already, with one statement; extends the
// leases of their notifications; and cancels runs whose lock may have expired.
// The three do not wait for each other: a broker that hangs costs no lock, and a
// database that hangs is noticed. With nothing held nobody is asked anything.
//
// A claim is believed for LockTimeout from the moment its last successful
// renewal was asked for, by this machine's monotonic clock, give or take an
// eighth: the database wrote locked_at later than that.
func (w *Worker) heartbeat(ctx context.Context) {
	var beats sync.WaitGroup
	beats.Go(func() { every(ctx, w.config.Heartbeat, func() { w.renewClaims(ctx) }) })
	beats.Go(func() { every(ctx, w.config.Lease/3, func() { w.extendLeases(ctx) }) })
	beats.Go(func() {
		every(ctx, w.config.LockTimeout/8, func() { w.runs.expire(time.Now(), w.config.LockTimeout) })
	})
	beats.Wait()
}

func every(ctx context.Context, interval time.Duration, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

func (w *Worker) renewClaims(ctx context.Context) {
	now := time.Now()
	// What would be older than Heartbeat at the next tick but one is left out.
	due := w.runs.held(now, func(x *execution) bool { return now.Sub(x.renewed) >= w.config.Heartbeat/2 })
	if len(due) == 0 {
		return
	}
	claims := make([]Claim, len(due))
	for i, x := range due {
		claims[i] = x.run.claim()
	}
	w.runs.update(due, func(x *execution) { x.place = 0 }) // a renewal moves the row
	ctx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	written, err := w.beats.Renew(ctx, claims)
	if err != nil {
		w.log.Warn("could not renew claims", zap.Int(logCount, len(claims)), zap.Error(err))
		return
	}
	renewed, lost := idSet(written.Done), idSet(written.Lost)
	w.runs.update(due, func(x *execution) {
		switch {
		case renewed[x.run.ID]:
			x.renewed = now
		case lost[x.run.ID] && !x.ended:
			x.ctx.end(ErrLockLost)
		}
	})
}

// extendLeases keeps the notifications of running events from being shown to
// others, so that a crash, and not a long run, brings them out again.
func (w *Worker) extendLeases(ctx context.Context) {
	now := time.Now()
	due := w.runs.held(now, func(x *execution) bool { return now.Sub(x.leased) >= w.config.Lease/4 && !x.ended && x.delivery.rung() })
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

func idSet(ids []EventID) map[EventID]bool {
	set := make(map[EventID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
