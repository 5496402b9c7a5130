package fallback

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/internal/lostanswer"
	"eventsv2/internal/refusal"
)

// searches is the schedule of the queries to the database.
type searches struct {
	until    time.Time              // polls continue until then, even if the notifier is not down
	polling  bool                   // a poll is running; there is one at a time
	polledAt time.Time              // when the last poll began
	yieldTo  time.Time              // until then other workers poll first
	pollAt   time.Time              // when the next poll may begin
	sweepAt  time.Time              // when the next sweep may begin
	swept    eventqueue.EventID     // up to which event the current walk over the table has come
	round    maintenance.RoundPlace // how far the current round has come
}

// wakesPerPoll is how many times per poll interval, at most, other programs can cause an
// early poll.
const wakesPerPoll = 4

const (
	// statementTakes bounds one statement: while a Pull waits for it, the notifier is not
	// tried. The answer of a poll is awaited so long only where others have not come.
	statementTakes = 10 * time.Second
	// maxHeld is how many notifications a process may hold and still take due events. A
	// process polls only when it has handed out all notifications that are ready. So those
	// that it holds are delayed, and when it holds that many, other workers have to find the
	// rest.
	maxHeld = 50 * eventqueue.MaxPublish
)

// wake is called when a program could not publish. It makes this process poll the database
// soon, and for a while. The relay was woken as well; the delay gives it the time to
// publish, if it can.
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
	r.until = now.Add(r.config.PollFor)
	r.signal()
}

// marking is the store as what marks notifications that a statement without an answer may have taken: this
// process polls for their events at once, however soon it has polled before.
type marking struct{ r *Receiver }

// MarkPending implements lostanswer.Store.
func (m marking) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	_, err := m.MarkPendingOrHeld(ctx, ids)
	return err
}

// MarkPendingOrHeld implements lostanswer.Marker, as far as the store does.
func (m marking) MarkPendingOrHeld(ctx context.Context, ids []eventqueue.EventID) (held []eventqueue.EventID, err error) {
	if marker, is := m.r.store.(lostanswer.Marker[eventqueue.EventID]); is {
		held, err = marker.MarkPendingOrHeld(ctx, ids)
	} else {
		err = m.r.store.MarkPending(ctx, ids)
	}
	if err == nil {
		m.r.mu.Lock()
		defer m.r.mu.Unlock()
		now := time.Now()
		m.r.pollAt, m.r.until = now, now.Add(m.r.config.PollFor)
		m.r.signal()
	}
	return held, err
}

// yield delays the next poll of this process, so that the workers that were woken just now
// poll first: they may have handlers for the events that this process has declined. The
// delay is bounded, since this process may have the handlers of other events. The caller
// holds mu.
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

// awake reports whether the database is to be polled. The caller holds mu.
func (r *Receiver) awake(now time.Time) bool { return r.down || now.Before(r.until) }

// poll puts due events into the local queue if a poll is due. While the notifier is down
// or suspected, it also puts events there whose notifications seem lost. It reports
// whether it found any.
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
	r.taking <- struct{}{}
	defer func() { <-r.taking }()
	var due []eventqueue.Notification
	err = r.wait.Do(ctx, func(ctx context.Context) (err error) {
		due, err = r.store.TakeDue(ctx, 0, limit, r.takes.AwaitFailure)
		return err
	})
	if err = r.reported(err); err != nil || len(due) == 0 {
		return false, err
	}
	r.mu.Lock()
	now := time.Now()
	r.until = now.Add(r.config.PollFor) // the program that left these may leave more
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

// sweep searches for events whose notifications were published and not delivered. It
// first takes some of every handler and ordering group, so that none of these has to wait
// for all events of another one (I20), and then searches one page of all events.
func (r *Receiver) sweep(ctx context.Context) (found bool, err error) {
	r.mu.Lock()
	now := time.Now()
	// After a long wait, notifications that this process holds seem lost as well. So it
	// does not search while it holds many.
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
	lost, next, err := r.search.TakeLost(asking, after, sweepPage, r.config.LostAfter)
	if err = r.reported(err); err != nil {
		return found, err
	}
	r.mu.Lock()
	r.swept, r.round = next, round
	if next != 0 || round != (maintenance.RoundPlace{}) { // there is more to search: continue soon
		r.sweepAt = time.Now().Add(r.config.Sweep / wakesPerPoll)
	}
	r.mu.Unlock()
	r.confirm(lost)
	return found || len(lost) > 0, r.enqueue(ctx, lost)
}

// goRound continues a round to its end, or until its part of the time is over.
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
	lost, next, err := r.search.TakeRound(ctx, after, r.config.LostAfter)
	return lost, next, r.reported(err)
}

// reported logs the rows that the database refuses to write, and returns any other error. What the
// store returned beside it counts.
func (r *Receiver) reported(err error) error { return refusal.Report(r.config.Logger, err) }

// Deliver passes notifications directly to the Pulls of this process while the notifier is
// down, since published ones would not arrive until it is back. It reports whether it has
// done so.
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

// nextTime returns how long a Pull may wait, unless something changes.
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
