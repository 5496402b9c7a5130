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

// renewer is the database as the heartbeat uses it.
type renewer interface {
	Renew(ctx context.Context, claims []Claim) (WriteResult, error)
}

// heart keeps the claims and leases of running events.
type heart struct {
	part
	renewer  renewer
	receiver eventqueue.Receiver
	runs     *runs
	cancels  cancelHints
	slots    *slotReports
	hung     *hungWatch
}

// heartbeat renews, every interval until ctx ends, the claims of all events that have been held for
// so long already, with one statement, whose answer says which of them operators have cancelled; extends the leases of their notifications; ends runs
// whose lock may have expired, or whose event was cancelled; and does what there is to do about handlers that hang. These do not wait for each other: a notifier that hangs costs no
// lock, and a database that hangs is noticed. While no event runs it sends nothing.
//
// A claim is believed for LockTimeout from the moment its last successful
// renewal was asked for, by this machine's monotonic clock, give or take an
// eighth: the database wrote locked_at later than that.
func (h *heart) heartbeat(ctx context.Context) {
	var beats sync.WaitGroup
	beat := func(name string, interval, most time.Duration, f func()) {
		loop := h.rounds.Loop(name)
		beats.Go(func() {
			defer loop.Ends()
			every(ctx, interval, func() { loop.Within(interval + most) }, f)
		})
	}
	beat("heartbeat that renews locks", h.config.Heartbeat, h.config.LockTimeout/2, func() { h.renewClaims(ctx) })
	beat("heartbeat that extends leases", h.config.Lease/3, answerTimeout, func() { h.extendLeases(ctx) })
	beat("report of the slots in use", h.config.Heartbeat, h.config.LockTimeout/2, func() { h.slots.report(ctx) })
	beat("watch for handlers that do not return", hungInterval, 0, h.hung.look)
	beat("check for expired locks", h.config.LockTimeout/8, 0, func() { h.runs.expire(time.Now(), h.config.LockTimeout) })
	beats.Go(func() { h.renewCancelled(ctx) })
	beats.Wait()
}

func every(ctx context.Context, interval time.Duration, begins, f func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		begins()
		select {
		case <-ticker.C:
			f()
		case <-ctx.Done():
			return
		}
	}
}

func (h *heart) renewClaims(ctx context.Context) {
	now := time.Now()
	// Claims that will not be older than Heartbeat at the tick after next are left out.
	h.renew(ctx, now, h.runs.held(now, func(x *execution) bool { return now.Sub(x.renewed) >= h.config.Heartbeat/2 }))
}

// renew renews the claims of these runs, and ends those runs that turn out to have lost theirs, or whose event was cancelled.
func (h *heart) renew(ctx context.Context, now time.Time, due []*execution) {
	claims := make([]Claim, len(due))
	for i, x := range due {
		claims[i] = x.claim()
	}
	h.runs.update(due, func(x *execution) { x.rowID = 0 }) // a renewal moves the row
	ctx, cancel := context.WithTimeout(ctx, h.config.LockTimeout/2)
	defer cancel()
	written, refused, err := renewAround(ctx, h.renewer, claims)
	if err != nil {
		h.log.Warn("could not renew claims", zap.Int(logkey.Count, len(claims)), zap.Error(err))
	}
	why := map[eventqueue.EventID]error{}
	for _, r := range refused {
		why[r.Item.Event] = r.Err
	}
	if oldest, any := h.runs.oldest(due); any {
		h.config.ObserveRenewal(Renewal{Claims: len(claims), Age: time.Since(oldest), Err: err})
	}
	renewed, lost, cancelled := idSet(written.Done), idSet(written.Lost), idSet(written.Cancelled)
	h.runs.update(due, func(x *execution) {
		if err := why[x.run.ID]; err != nil && !x.unrenewable {
			x.unrenewable = true
			h.log.Error("the database refuses to renew the claim of this event, and of no other for it; its lock will expire; "+
				"check its row, and the triggers and constraints of its table", zap.Stringer(logkey.Event, x.run.ID), zap.Error(err))
		}
		switch {
		case renewed[x.run.ID]:
			x.renewed = now
		case lost[x.run.ID] && !x.submitted:
			x.ctx.end(eventqueue.ErrLockLost)
		}
		if cancelled[x.run.ID] && !x.submitted {
			x.ctx.end(eventqueue.ErrCancelled)
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
			written.Cancelled = append(written.Cancelled, some.Cancelled...)
		}
		return err
	}, claims)
	return written, refused, err
}

// extendLeases keeps the notifications of running events from being shown to
// others, so that a crash, and not a long run, brings them out again.
func (h *heart) extendLeases(ctx context.Context) {
	now := time.Now()
	due := h.runs.held(now, func(x *execution) bool {
		return now.Sub(x.leased) >= h.config.Lease/4 && !x.submitted && x.delivery.notified()
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
	if err := h.receiver.Requeue(ctx, deliveries, h.config.Lease); err != nil {
		h.log.Warn("could not extend the leases of notifications; they come again early",
			zap.Int(logkey.Count, len(deliveries)), zap.Error(err))
		return
	}
	h.runs.update(due, func(x *execution) { x.leased = now })
}
