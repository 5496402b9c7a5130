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
	// urgencyMinInterval while it runs some. One of lowEvery looks is for those of low priority first, so that
	// there are always some of them among the others.
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
	after    map[string]eventqueue.Scope // where the next look for a priority begins
}

// sawClaimed takes in an event that was claimed. One that had to wait for something else than a worker
// shows nothing.
func (u *urgency) sawClaimed(claimed *ClaimResult) {
	if claimed.Facts.Delay < -behindAfter && !claimed.Grouped && !claimed.PutOff && claimed.Event.Priority != priority.Low && !u.behind.Load() {
		u.behind.Store(true)
	}
}

func (u *urgency) run(ctx, work context.Context) {
	wait := backoff.New(u.config.Jitter)
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
			clear(u.after)
			continue
		}
		claimed, took, err := u.look(ctx, work, look%lowEvery == 0)
		if err != nil && ctx.Err() == nil {
			u.log.Warn("could not query runnable events by their priority", zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
			wait.Pause(ctx)
			continue
		}
		wait.Reset()
		if claimed {
			interval = urgencyMinInterval
		}
		interval = max(interval, fairnessPause*min(took, fairnessTimeout))
	}
}

// look takes slots, and claims for them what it finds. It reports whether there was anything, and how long the
// database took.
func (u *urgency) look(ctx, work context.Context, lowFirst bool) (claimed bool, took time.Duration, err error) {
	n, err := u.fairness.reserved.takeNext(ctx, u.config.ClaimBatch)
	if err != nil {
		return false, 0, err
	}
	began := time.Now()
	used := 0
	if lowFirst {
		used, err = u.claim(ctx, work, priority.Low, 1)
	}
	if err == nil && n > used {
		var high int
		high, err = u.claim(ctx, work, priority.High, n-used)
		used += high
	}
	if used > 0 {
		u.fairness.reserved.wentFirst()
	}
	u.fairness.reserved.give(n - used)
	return used > 0, time.Since(began), err
}

// claim claims at most n events of one priority and returns how many. Each look goes on behind the canvas of the last
// event of the one before, so that each canvas has its turn.
func (u *urgency) claim(ctx, work context.Context, which string, n int) (int, error) {
	asking, cancel := context.WithTimeout(ctx, fairnessTimeout)
	defer cancel()
	after := u.after[which]
	events, next, err := u.store.RunnablePriority(asking, which, after, n)
	if err != nil {
		return 0, err
	}
	chosen := pickEvenly(u.fairness.runnableHere(events), n)
	u.after[which] = next
	if len(chosen) == 0 {
		return 0, nil
	}
	u.after[which] = eventqueue.Scope{Canvas: following(chosen[len(chosen)-1].Canvas)}
	if err := u.fairness.decider.claim(ctx, work, chosen); err != nil {
		return 0, err
	}
	return len(chosen), nil
}

// following is the canvas after another one.
func following(canvas eventqueue.CanvasID) eventqueue.CanvasID {
	for i := len(canvas) - 1; i >= 0; i-- {
		if canvas[i]++; canvas[i] != 0 {
			break
		}
	}
	return canvas
}
