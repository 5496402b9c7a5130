package fallback

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// searches is the schedule of the queries to the database.
type searches struct {
	until    time.Time // while the notifier is well
	polling  bool      // one poll at a time
	polledAt time.Time // the last time
	yieldTo  time.Time // until then others poll first
	pollAt   time.Time
	sweepAt  time.Time
	swept    eventqueue.EventID     // how far the walk under way has come
	round    maintenance.RoundPlace // and the round
}

// wakesPerPoll bounds how often other programs can make it poll early: so many times per
// interval.
const wakesPerPoll = 4

const (
	// statementTakes bounds one statement: while a Pull waits for it, the notifier is not
	// tried.
	statementTakes = 10 * time.Second
	// maxHeld is how many notifications a process that takes what is due holds already, at
	// most. It is asked only when it has handed out all of them, so these are such as it
	// puts off, and others have to find the rest.
	maxHeld = 50 * eventqueue.MaxPublish
)

// wake has the database polled soon, and for a while: a program could not publish. The
// relay was woken as well; if it can publish, the delay leaves it the time to do so.
func (r *Receiver) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	soon := now.Add(r.config.Jitter(r.config.Poll / wakesPerPoll))
	if earliest := r.polledAt.Add(r.config.Poll / wakesPerPoll); soon.Before(earliest) {
		soon = earliest
	}
	if soon.Before(r.yieldTo) {
		soon = r.yieldTo
	}
	if !r.awake(now) || r.pollAt.After(soon) {
		r.pollAt = soon
	}
	r.until = now.Add(r.config.Linger)
	r.signal()
}

// yield has this process poll later than those that were woken just now, which have the
// handlers of what it has left to them; but not for ever, since it may have the handlers of
// other events. Called with mu held.
func (r *Receiver) yield() {
	now := time.Now()
	r.yieldTo = now.Add(r.config.Poll)
	if latest := r.polledAt.Add(2 * r.config.Poll); r.yieldTo.After(latest) {
		r.yieldTo = latest
	}
	if r.pollAt.Before(r.yieldTo) {
		r.pollAt = r.yieldTo
	}
}

// awake reports whether the database is to be polled. Called with mu held.
func (r *Receiver) awake(now time.Time) bool { return r.down || now.Before(r.until) }

// poll puts due events into the local queue if it is time for that; and while the notifier
// is down or suspected, events whose notifications seem lost. It reports whether it found
// any.
func (r *Receiver) poll(ctx context.Context, max int) (found bool, err error) {
	r.mu.Lock()
	now := time.Now()
	due := r.awake(now) && !r.polling && !now.Before(r.pollAt) && r.local.Len() <= maxHeld
	if due {
		r.polling, r.polledAt = true, now
		r.pollAt = now.Add(r.config.Poll/2 + r.config.Jitter(r.config.Poll))
	}
	r.mu.Unlock()
	if due {
		found, err = r.takeDue(ctx, max)
		r.mu.Lock()
		r.polling = false
		if err != nil { // after a long wait the next poll would be due at once, before the notifier is tried
			r.pollAt = time.Now().Add(r.config.Poll/2 + r.config.Jitter(r.config.Poll))
		}
		r.mu.Unlock()
	}
	if err != nil {
		return false, err
	}
	lost, err := r.sweep(ctx)
	return found || lost, err
}

func (r *Receiver) takeDue(ctx context.Context, max int) (found bool, err error) {
	limit := min(max, eventqueue.MaxPublish)
	asking, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	due, err := r.store.TakeDue(asking, 0, limit)
	if err != nil || len(due) == 0 {
		return false, err
	}
	r.mu.Lock()
	now := time.Now()
	r.until = now.Add(r.config.Linger) // the program that left these may leave more
	for _, n := range due {
		r.pending[n.Event] = struct{}{}
	}
	if len(due) == limit { // more may be due
		r.pollAt = now
	}
	r.mu.Unlock()
	return true, r.enqueue(ctx, due)
}

const (
	// sweepPage is how many rows one search for lost notifications reads.
	sweepPage = 20_000
	// roundShare is the part of the time between two polls that a round may take.
	roundShare = 8
)

// sweep searches for events whose notifications were published and not delivered: first
// for some of every handler and ordering group, so that none waits for all of another
// (I20), and then in a page of all events.
func (r *Receiver) sweep(ctx context.Context) (found bool, err error) {
	r.mu.Lock()
	now := time.Now()
	// What is in hand already is taken for lost, too, when it has waited for long.
	if !r.searching(now) || now.Before(r.sweepAt) || r.local.Len() > eventqueue.MaxPublish {
		r.mu.Unlock()
		return false, nil
	}
	r.sweepAt = now.Add(r.config.Sweep)
	after, round := r.swept, r.round
	r.mu.Unlock()
	defer func() {
		if err != nil { // as after a poll that fails
			r.mu.Lock()
			r.sweepAt = time.Now().Add(r.config.Sweep)
			r.mu.Unlock()
		}
	}()
	found, round, err = r.goRound(ctx, round)
	if err != nil {
		return found, err
	}
	asking, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	lost, next, err := r.store.TakeLost(asking, after, sweepPage, r.config.Quiet, r.config.LockTimeout)
	if err != nil {
		return found, err
	}
	r.mu.Lock()
	r.swept, r.round = next, round
	if next != 0 || round != (maintenance.RoundPlace{}) { // the rest soon
		r.sweepAt = time.Now().Add(r.config.Sweep / wakesPerPoll)
	}
	r.mu.Unlock()
	r.confirm(lost)
	return found || len(lost) > 0, r.enqueue(ctx, lost)
}

// goRound continues a round for a part of the time, or to its end.
func (r *Receiver) goRound(ctx context.Context, after maintenance.RoundPlace) (found bool, next maintenance.RoundPlace, err error) {
	for began := time.Now(); ; {
		lost, next, err := r.takeRound(ctx, after)
		if err != nil {
			return found, after, err
		}
		if len(lost) > 0 {
			found = true
			r.confirm(lost)
			if err := r.enqueue(ctx, lost); err != nil {
				return found, next, err
			}
		}
		if after = next; next == (maintenance.RoundPlace{}) || time.Since(began) > r.config.Sweep/wakesPerPoll/roundShare {
			return found, next, nil
		}
	}
}

func (r *Receiver) takeRound(ctx context.Context, after maintenance.RoundPlace) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	return r.store.TakeRound(ctx, after, r.config.Quiet, r.config.LockTimeout)
}

// Deliver hands notifications to the Pulls of this process, while the notifier is down:
// published ones would not come before it is back. It reports whether it has.
func (r *Receiver) Deliver(ctx context.Context, notifications []eventqueue.Notification) (delivered bool) {
	r.mu.Lock()
	down := r.down
	r.mu.Unlock()
	return down && r.enqueue(ctx, notifications) == nil
}

// enqueue puts notifications into the local queue.
func (r *Receiver) enqueue(ctx context.Context, found []eventqueue.Notification) error {
	for len(found) > 0 {
		n := min(len(found), eventqueue.MaxPublish)
		if err := r.local.Publish(ctx, found[:n]); err != nil {
			return err
		}
		found = found[n:]
	}
	r.mu.Lock()
	r.signal()
	r.mu.Unlock()
	return nil
}

// never is longer than any wait.
const never = time.Hour

// nextTime is how long there is nothing to do for a Pull unless something changes.
func (r *Receiver) nextTime() time.Duration {
	wait := never
	if next, ok := r.local.Next(); ok {
		wait = min(wait, next)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.awake(now) && !r.polling && r.local.Len() <= maxHeld {
		wait = min(wait, r.pollAt.Sub(now))
	}
	if r.searching(now) && r.local.Len() <= eventqueue.MaxPublish {
		wait = min(wait, r.sweepAt.Sub(now))
	}
	if r.down && !r.trying || !r.down && r.asking < r.pulling {
		wait = min(wait, r.askAt.Sub(now))
	}
	return max(wait, time.Millisecond)
}
