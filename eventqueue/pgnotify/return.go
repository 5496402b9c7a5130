package pgnotify

import (
	"context"
	"math/rand/v2"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
)

// The waits of the returner after failures grow from the first to the second.
const (
	minFailureWait = 100 * time.Millisecond
	maxFailureWait = 5 * time.Second
)

// returnExpired inserts the notifications whose leases have ended into the table,
// until ctx ends. It repeats an insert that failed, because these notifications are
// nowhere else.
func (n *Notifier) returnExpired(ctx context.Context) {
	wait := minFailureWait
	for ctx.Err() == nil {
		due, again := n.leases.takeDue(time.Now(), eventqueue.MaxPublish)
		if len(due) == 0 {
			n.waitUntil(ctx, again)
			continue
		}
		for {
			err := n.insert(ctx, due)
			if err == nil {
				wait = minFailureWait
				break
			}
			if ctx.Err() != nil {
				n.unreturned = due
				return
			}
			n.log.Warn("could not return notifications to the table; trying again",
				zap.Int("count", len(due)), zap.Duration("wait", wait), zap.Error(err))
			backoff.Sleep(ctx, wait/2+rand.N(wait))
			wait = min(2*wait, maxFailureWait)
		}
	}
}

// waitUntil waits until the given time, or until a lease ends sooner.
func (n *Notifier) waitUntil(ctx context.Context, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.leases.sooner:
	case <-ctx.Done():
	}
}
