package worker

import (
	"context"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/priority"
)

const (
	// urgencyInterval is how often a worker that is behind looks for events of high priority, and
	// urgencyMinInterval while it finds some. One of lowEvery looks is for those of low priority, so that there
	// are always some of them among the others.
	urgencyInterval    = 300 * time.Millisecond
	urgencyMinInterval = 50 * time.Millisecond
	lowEvery           = 10
	// An event that is claimed so long after it was due shows that the worker is behind. Without a
	// backlog an event takes some milliseconds.
	behindAfter = 250 * time.Millisecond
)

// urgency has a worker that is behind run events of high priority before others. Notifiers deliver in
// their own order, in which they may come behind a million of others. So while events wait, the worker
// asks the database for them, and runs them in reserved slots, as fairness does. A worker that is not
// behind asks nothing.
type urgency struct {
	part
	fairness *fairness // which claims what is found
	behind   *atomic.Bool
}

// sawDelay takes in how long it is until an event that was claimed is due: how long ago it was.
func (u *urgency) sawDelay(delay time.Duration) {
	if delay < -behindAfter && !u.behind.Load() {
		u.behind.Store(true)
	}
}

func (u *urgency) run(ctx, work context.Context) {
	wait := backoff.New(u.config.Jitter)
	after := map[string]eventqueue.Scope{}
	interval := urgencyInterval
	var until time.Time // the worker counts as behind
	for look := 1; ctx.Err() == nil; look++ {
		backoff.Sleep(ctx, interval*9/10+u.config.Jitter(interval/5))
		interval = urgencyInterval
		if full := u.fairness.slotsFull(); u.behind.Swap(false) || full {
			until = time.Now().Add(urgencyInterval)
		}
		if !time.Now().Before(until) {
			look = 0
			clear(after)
			continue
		}
		which := priority.High
		if look%lowEvery == 0 {
			which = priority.Low
		}
		found, next, err := u.look(ctx, work, which, after[which])
		after[which] = next
		if found && which == priority.High {
			interval = urgencyMinInterval
		}
		if err != nil && ctx.Err() == nil {
			u.log.Warn("could not query runnable events of a priority", zap.String("priority", which), zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			wait.Pause(ctx)
			continue
		}
		wait.Reset()
	}
}

// look claims events of one priority, from the given scope on, and returns whether there were any, and where
// the next look begins.
func (u *urgency) look(ctx, work context.Context, which string, after eventqueue.Scope) (found bool, next eventqueue.Scope, err error) {
	asking, cancel := context.WithTimeout(ctx, fairnessTimeout)
	defer cancel()
	events, next, err := u.store.RunnablePriority(asking, which, after)
	if err != nil {
		return false, after, err
	}
	if events = u.fairness.known(events); len(events) == 0 {
		return false, next, nil
	}
	n, err := u.fairness.reserved.takeNext(ctx, min(len(events), u.config.ClaimBatch))
	if err != nil {
		return false, after, err
	}
	_, err = u.fairness.claimEvenly(ctx, work, events, n)
	return true, next, err
}
