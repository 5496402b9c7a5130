package worker

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// renewer is what the heartbeat needs of the database.
type renewer interface {
	Renew(ctx context.Context, claims []Claim) (WriteResult, error)
}

// heart keeps the claims and leases of running events.
type heart struct {
	part
	renewer  renewer
	receiver eventqueue.Receiver
	runs     *runs
}

// heartbeat renews, every interval until ctx ends, the claims of all events that have been held for
// so long already, with one statement; extends the leases of their notifications; and cancels runs
// whose lock may have expired. The three do not wait for each other: a notifier that hangs costs no
// lock, and a database that hangs is noticed. While no event runs it sends nothing.
//
// A claim is believed for LockTimeout from the moment its last successful
// renewal was asked for, by this machine's monotonic clock, give or take an
// eighth: the database wrote locked_at later than that.
func (w *heart) heartbeat(ctx context.Context) {
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

func (w *heart) renewClaims(ctx context.Context) {
	now := time.Now()
	// Claims that will not be older than Heartbeat at the tick after next are left out.
	due := w.runs.held(now, func(x *execution) bool { return now.Sub(x.renewed) >= w.config.Heartbeat/2 })
	claims := make([]Claim, len(due))
	for i, x := range due {
		claims[i] = x.claim()
	}
	w.runs.update(due, func(x *execution) { x.rowID = 0 }) // a renewal moves the row
	ctx, cancel := context.WithTimeout(ctx, w.config.LockTimeout/2)
	defer cancel()
	written, refused, err := renewAround(ctx, w.renewer, claims)
	if err != nil {
		w.log.Warn("could not renew claims", zap.Int(logkey.Count, len(claims)), zap.Error(err))
	}
	why := map[eventqueue.EventID]error{}
	for _, r := range refused {
		why[r.Item.Event] = r.Err
	}
	renewed, lost := idSet(written.Done), idSet(written.Lost)
	w.runs.update(due, func(x *execution) {
		if err := why[x.run.ID]; err != nil && !x.unrenewable {
			x.unrenewable = true
			w.log.Error("the database refuses to renew the claim of this event, and of no other for it; its lock will expire; "+
				"look at its row, and at what else is on its table", zap.Stringer(logkey.Event, x.run.ID), zap.Error(err))
		}
		switch {
		case renewed[x.run.ID]:
			x.renewed = now
		case lost[x.run.ID] && !x.submitted:
			x.ctx.end(eventqueue.ErrLockLost)
		}
	})
}

// renewAround renews claims, and goes around those that the database refuses to renew (I15). What it
// returns as written counts, whatever the error is. Without claims it asks nothing (I12).
func renewAround(ctx context.Context, renewer renewer, claims []Claim) (written WriteResult, refused []refusal.Refused[Claim], err error) {
	refused, err = refusal.Halve(func(claims []Claim) error {
		some, err := renewer.Renew(ctx, claims)
		if err == nil {
			written.Done, written.Lost = append(written.Done, some.Done...), append(written.Lost, some.Lost...)
		}
		return err
	}, claims)
	return written, refused, err
}

// extendLeases keeps the notifications of running events from being shown to
// others, so that a crash, and not a long run, brings them out again.
func (w *heart) extendLeases(ctx context.Context) {
	now := time.Now()
	due := w.runs.held(now, func(x *execution) bool {
		return now.Sub(x.leased) >= w.config.Lease/4 && !x.submitted && x.delivery.notified()
	})
	if len(due) == 0 {
		return
	}
	deliveries := make([]eventqueue.Delivery, len(due))
	for i, x := range due {
		deliveries[i] = x.delivery.Delivery
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := w.receiver.Requeue(ctx, deliveries, w.config.Lease); err != nil {
		w.log.Warn("could not extend the leases of notifications; they come again early",
			zap.Int(logkey.Count, len(deliveries)), zap.Error(err))
		return
	}
	w.runs.update(due, func(x *execution) { x.leased = now })
}
