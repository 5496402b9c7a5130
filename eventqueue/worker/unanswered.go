package worker

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

// newClaimID makes the number of a claim. It comes from the system, whose numbers do not
// repeat in copies of a virtual machine. A fence token can be added to it.
func newClaimID() eventqueue.ClaimID {
	var b [8]byte
	_, _ = rand.Read(b[:]) // which never fails
	return eventqueue.ClaimID(max(binary.LittleEndian.Uint64(b[:])>>2, 1))
}

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
func (w *unansweredClaims) add(claim eventqueue.ClaimID, ids []eventqueue.EventID) {
	w.box.putNewest(unanswered{claim: claim, ids: ids}, maxUnanswered)
}

// giveBackTakes bounds the statement that releases a claim.
const giveBackTakes = 10 * time.Second

// A statement whose answer was lost may still be under way, and commit after the attempt to release
// its claim. So events that were not found are tried again after these waits.
var lateCommits = [...]time.Duration{time.Second, 3 * time.Second, 10 * time.Second}

// giveBackUnanswered releases what was claimed without an answer, so that it can be claimed at once
// and not when its lock has expired, and has it notified. It tries until the database answers,
// until the batcher is closed and empty, or ctx ends.
func (w *unansweredClaims) giveBackUnanswered(ctx context.Context) {
	var late []unanswered
	for {
		there := w.box.wait(firstOf(late), ctx.Done())
		if ctx.Err() != nil {
			return
		}
		now, rest := dueNow(late)
		closed := !there && len(now) == 0
		if closed {
			now, rest = late, nil // a last time
		}
		late = rest
		for _, u := range w.box.takeNow(now, len(now)+maxUnanswered) {
			if u.ids = w.giveBack(ctx, u); len(u.ids) > 0 && u.tries < len(lateCommits) && len(late) < maxUnanswered {
				u.next = time.Now().Add(lateCommits[u.tries])
				u.tries++
				late = append(late, u)
			}
		}
		if closed {
			return
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
func (w *unansweredClaims) giveBack(ctx context.Context, u unanswered) (missing []eventqueue.EventID) {
	wait := backoff.New(w.config.Jitter)
	for {
		missing, err := w.giveBackOnce(ctx, u)
		switch {
		case err == nil:
			return missing
		case ctx.Err() != nil:
			return nil
		case sqlstate.Refused(err): // it would be refused for ever
			w.log.Error("the database refuses to release the events of a claim that was not answered; their locks will expire",
				zap.Int(logkey.Count, len(u.ids)), zap.Error(err))
			return nil
		}
		wait.Next = min(wait.Next, maxCompleteWait)
		w.log.Warn("could not release the events of a claim that was not answered; trying again",
			zap.Int(logkey.Count, len(u.ids)), zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}

func (w *unansweredClaims) giveBackOnce(ctx context.Context, u unanswered) (missing []eventqueue.EventID, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(giveBackTakes, w.config.LockTimeout/2))
	defer cancel()
	var released, left []eventqueue.EventID
	refused, err := refusal.Halve(func(ids []eventqueue.EventID) error {
		some, err := w.store.GiveBack(ctx, u.claim, ids)
		released = append(released, some...)
		return err
	}, u.ids)
	for _, r := range refused {
		left = append(left, r.Item)
		w.log.Error("the database refuses to give back this event of a claim that was not answered, and no other for it; its lock will expire; "+
			"look at its row, and at what else is on its table", zap.Stringer(logkey.Event, r.Item), zap.Error(r.Err))
	}
	if err != nil {
		return nil, err
	}
	if len(released) > 0 {
		w.log.Warn("released the events of a claim that was not answered", zap.Int(logkey.Count, len(released)))
	}
	if len(released) > 0 || u.tries == 0 { // also those that an earlier try gave back, whose answer was lost as well
		if err := w.queue.NotifyPending(ctx, u.ids); err != nil {
			w.log.Warn("could not notify released events; the relay does", zap.Int(logkey.Count, len(u.ids)), zap.Error(err))
		}
	}
	releasedSet := idSet(append(released, left...))
	return slices.DeleteFunc(slices.Clone(u.ids), func(id eventqueue.EventID) bool { return releasedSet[id] }), nil
}
