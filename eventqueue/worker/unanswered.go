package worker

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// unanswered is a claim that may have committed or not, or whose runs may have been recorded as
// begun or not. None of its handlers was called.
type unanswered struct {
	claim eventqueue.ClaimID
	ids   []eventqueue.EventID
	tries int       // that were answered, and did not find all events
	next  time.Time // of the next one
}

// maxUnanswered is how many unanswered claims a worker records; the locks of further ones expire,
// which uses no attempt.
const maxUnanswered = 1000

// unansweredClaims releases claims that may hold locks without a worker that knows of them.
type unansweredClaims struct {
	part
	queue *eventqueue.Queue
	box   *batcher[unanswered]
}

// add records a claim; it never blocks.
func (c *unansweredClaims) add(claim eventqueue.ClaimID, ids []eventqueue.EventID) {
	c.box.putNewest(maxUnanswered, unanswered{claim: claim, ids: ids})
}

// giveBackTakes bounds the statement that releases a claim.
const giveBackTakes = 10 * time.Second

// A statement whose answer was lost may still be under way, and commit after the attempt to release
// its claim. So events that were not found are tried again after these waits.
var lateCommits = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}

// giveBackUnanswered releases what was claimed without an answer, so that it can be claimed at once
// and not when its lock has expired, and has it notified. It tries until the database answers,
// until the batcher is closed and no claim may commit any more, or ctx ends.
func (c *unansweredClaims) giveBackUnanswered(ctx context.Context) {
	var late []unanswered
	for {
		there := c.box.wait(firstOf(late), ctx.Done())
		if ctx.Err() != nil {
			return
		}
		now, rest := dueNow(late)
		if !there && len(now) == 0 { // the worker stops
			if len(late) == 0 {
				return
			}
			hurry(late)
			select {
			case <-firstOf(late):
			case <-ctx.Done():
			}
			continue
		}
		late = rest
		for _, u := range c.box.takeNow(now, len(now)+maxUnanswered) {
			if u.ids = c.giveBack(ctx, u); len(u.ids) > 0 && u.tries < len(lateCommits) && len(late) < maxUnanswered {
				u.next = time.Now().Add(lateCommits[u.tries])
				u.tries++
				late = append(late, u)
			}
		}
	}
}

// hurry has the last try made at once, since its wait is too long for a stop. The waits before it are
// not: the claims that a stop cuts off are those that commit late.
func hurry(late []unanswered) {
	for i := range late {
		if late[i].tries == len(lateCommits) {
			late[i].next = time.Now()
		}
	}
}

// firstOf fires when the first of some claims is to be released again.
func firstOf(late []unanswered) <-chan time.Time {
	if len(late) == 0 {
		return nil
	}
	first := slices.MinFunc(late, func(a, b unanswered) int { return a.next.Compare(b.next) })
	return time.After(time.Until(first.next))
}

func dueNow(late []unanswered) (now, rest []unanswered) {
	at := time.Now()
	for _, u := range late {
		if at.Before(u.next) {
			rest = append(rest, u)
		} else {
			now = append(now, u)
		}
	}
	return now, rest
}

// giveBack releases a claim. It returns the events that were not found claimed, once the database
// has answered.
func (c *unansweredClaims) giveBack(ctx context.Context, u unanswered) (missing []eventqueue.EventID) {
	wait := backoff.New(c.config.Jitter)
	for {
		missing, err := c.giveBackOnce(ctx, u)
		switch {
		case err == nil:
			return missing
		case ctx.Err() != nil:
			return nil
		case sqlstate.Refused(err): // it would be refused for ever
			c.log.Error("the database refuses to release the events of a claim that was not answered; their locks will expire",
				zap.Int(logkey.Count, len(u.ids)), zap.Error(err))
			return nil
		}
		wait.Next = min(wait.Next, maxCompleteWait)
		c.log.Warn("could not release the events of a claim that was not answered; trying again",
			zap.Int(logkey.Count, len(u.ids)), zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}

func (c *unansweredClaims) giveBackOnce(ctx context.Context, u unanswered) (missing []eventqueue.EventID, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(giveBackTakes, c.config.LockTimeout/2))
	defer cancel()
	var released, left []eventqueue.EventID
	refused, err := refusal.Halve(func(ids []eventqueue.EventID) error {
		some, err := c.store.GiveBack(ctx, u.claim, ids)
		released = append(released, some...)
		return err
	}, u.ids)
	for _, r := range refused {
		left = append(left, r.Item)
		c.log.Error("the database refuses to give back this event of a claim that was not answered, and no other for it; its lock will expire; "+
			"check its row, and the triggers and constraints of its table", zap.Stringer(logkey.Event, r.Item), zap.Error(r.Err))
	}
	if err != nil {
		return nil, err
	}
	if len(released) > 0 {
		c.log.Warn("released the events of a claim that was not answered", zap.Int(logkey.Count, len(released)))
	}
	if len(released) > 0 || u.tries == 0 { // also those that an earlier try gave back, whose answer was lost as well
		if err := c.queue.NotifyPending(ctx, u.ids); err != nil {
			c.log.Warn("could not publish notifications for released events; the relay will", zap.Int(logkey.Count, len(u.ids)), zap.Error(err))
		}
	}
	releasedSet := idSet(append(released, left...))
	return slices.DeleteFunc(slices.Clone(u.ids), func(id eventqueue.EventID) bool { return releasedSet[id] }), nil
}
