package maintenance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
)

// Several loops search for lost notifications, concurrently. One round reads a few events of every
// handler, one those of every ordering group, and one those that have run for long, so that none of
// them waits until millions are walked, or for the others' notifications to be published (I20). The
// walk reaches every event eventually. Rows that wait for something else do not raise its load: ten
// million of them cost no more than ten thousand.
const (
	// sweepEvery is how often the relay searches for lost notifications, at least.
	sweepEvery = 5 * time.Second
	// sweepPage is how many rows one statement of the walk reads.
	sweepPage = 2000
	// roundsApart is how long after the round before it the next one begins, so that which of
	// them reads first is not left to the scheduler.
	roundsApart = time.Millisecond
	// roundRests is the part of the time between two rounds that it rests at least, after
	// one that took longer than that.
	roundRests = 10
	// parkedPages is how many pages with rows that mostly wait for something else the walk reads
	// before it rests.
	parkedPages = 5
	// walkRests is how many times as long as a page took the walk rests after one on which nothing
	// was lost.
	walkRests = 4
	// emptyShare is how many hundredths of the time until an event can be lost the walk rests, more or less, after it has
	// found none.
	emptyShare = 80
)

// round goes by all handlers, all ordering groups or all runs, again and again. It is for one
// goroutine.
type round struct {
	relay *Relay
	after RoundPlace // its Stage stays the same
	began time.Time
	more  bool
}

// on does the next part. Parts of all rounds are read one after the other, and when more of them
// follow, with a rest that is as long as the part took, so that with any number of handlers and
// ordering groups the relay reads for half of the time at most (I12). They are published
// concurrently.
func (r *round) on(ctx context.Context) (Relayed, error) {
	lost, err := r.take(ctx)
	if err != nil {
		return Relayed{}, fmt.Errorf("search each handler for lost notifications: %w", err)
	}
	published, err := r.relay.publishOrLeave(ctx, lost)
	if err == nil {
		err = r.relay.reportLost(ctx, lost)
	}
	return Relayed{Lost: published, More: r.more}, err
}

// take reads the next part when no other round reads.
func (r *round) take(ctx context.Context) ([]eventqueue.Notification, error) {
	var readFrom time.Time
	select {
	case readFrom = <-r.relay.readFrom:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { r.relay.readFrom <- readFrom }()
	backoff.Sleep(ctx, time.Until(readFrom))
	began := time.Now()
	if !r.more {
		r.began = began
	}
	lost, next, err := r.relay.takeRound(ctx, r.after)
	if err != nil {
		return nil, err
	}
	stage := r.after.Stage
	if r.more = next != (RoundPlace{}) && next.Stage == stage; r.more {
		readFrom = time.Now().Add(min(time.Since(began), sweepEvery))
	} else {
		next = RoundPlace{Stage: stage}
	}
	r.after = next
	return lost, nil
}

// rest waits until it is time for the next round, and longer while the walk finds no event.
func (r *round) rest(ctx context.Context) {
	every := r.relay.about(min(r.relay.config.Interval, sweepEvery))
	backoff.Sleep(ctx, max(every-time.Since(r.began), every/roundRests))
	for ctx.Err() == nil && r.relay.emptyFor() > 0 {
		backoff.Sleep(ctx, min(r.relay.emptyFor(), sweepEvery)+time.Duration(r.after.Stage)*roundsApart)
	}
}

// Interleaved returns the notifications in an order in which no canvas waits for all of another's
// (I20). It may reorder the slice that it is given.
func Interleaved(notifications []eventqueue.Notification) []eventqueue.Notification {
	of := map[eventqueue.CanvasID]int{}
	type ranked struct {
		eventqueue.Notification
		rank int
	}
	all := make([]ranked, len(notifications))
	for i, n := range notifications {
		all[i] = ranked{n, of[n.Canvas]}
		of[n.Canvas]++
	}
	if len(of) < 2 {
		return notifications
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return a.rank - b.rank })
	for i := range all {
		notifications[i] = all[i].Notification
	}
	return notifications
}

func (r *Relay) takeRound(ctx context.Context, after RoundPlace) ([]eventqueue.Notification, RoundPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	lost, next, err := r.searches.TakeRound(ctx, after, r.config.LostAfter)
	return lost, next, refusal.Report(r.log, err)
}

// walk is a walk over all events, by id. It is for one goroutine.
type walk struct {
	relay       *Relay
	publish     func(ctx context.Context, lost []eventqueue.Notification) (published int, err error)
	after       eventqueue.EventID
	empty       bool                        // it found no event at all
	lockTimeout time.Duration               // the database's, as of the last page
	looked      bool                        // nothing was lost on the last page
	parked      int                         // pages since it rested
	reported    map[eventqueue.EventID]bool // whose locks were reported
}

// on does the next page. More pages follow until all rows were read, or enough of them that wait for
// something else. It rests for having looked, never for having found something: what is lost is due
// now, and its rate has a limit of its own.
func (w *walk) on(ctx context.Context) (Relayed, error) {
	began := time.Now()
	done, err := w.page(ctx)
	if err != nil {
		return done, err
	}
	done.More = w.after != 0 && w.parked < parkedPages
	switch {
	case !done.More:
		w.parked = 0
	case w.looked:
		backoff.Sleep(ctx, min(walkRests*time.Since(began), sweepEvery))
	}
	return done, nil
}

// rest waits until it is time for the next walk. When there was no event, an event emitted since
// then is lost after LostAfter at the earliest, and a claim after the lock timeout. So until
// emptyShare of that has passed, no part of the relay reads events: one without work sends few
// statements. A commit with pending notifications ends that rest, that of the walk within sweepEvery:
// with them may come rows that are older than their commit.
func (w *walk) rest(ctx context.Context) {
	every := w.relay.about(min(w.relay.config.Interval, sweepEvery))
	if !w.empty {
		if w.relay.emptyUntil.Swap(0) != 0 {
			w.relay.wake()
		}
	} else {
		lost := min(w.relay.config.LostAfter, w.lockTimeout)
		every = max(every, w.relay.about(lost*emptyShare/100))
		w.relay.emptyUntil.Store(time.Now().Add(every + sweepEvery).UnixNano()) // the next walk comes first
		for ; ctx.Err() == nil && every > sweepEvery; every -= sweepEvery {
			if backoff.Sleep(ctx, sweepEvery); w.relay.emptyFor() <= 0 {
				return
			}
		}
	}
	backoff.Sleep(ctx, every)
}

// noLongerEmpty ends the rest of the rounds and the walk.
func (r *Relay) noLongerEmpty() { r.emptyUntil.Store(0) }

// emptyFor returns for how long the rounds rest because there was no event. It is for concurrent
// use.
func (r *Relay) emptyFor() time.Duration {
	return time.Until(time.Unix(0, r.emptyUntil.Load()))
}

func (w *walk) page(ctx context.Context) (Relayed, error) {
	var done Relayed
	swept, err := w.relay.sweepPage(ctx, w.after)
	if err != nil {
		return done, fmt.Errorf("find lost notifications: %w", err)
	}
	w.empty = w.after == 0 && swept.Read == 0
	w.lockTimeout = swept.LockTimeout
	w.relay.counted.Store(swept.Counted)
	w.after = swept.Next
	w.looked = len(swept.Lost) == 0
	if w.looked && swept.Live < sweepPage/2 {
		w.parked++
	}
	w.reportAhead(swept.Ahead)
	if done.Lost, err = w.publish(ctx, swept.Lost); err == nil { // otherwise they are pending, which workers learn of
		err = w.relay.reportLost(ctx, swept.Lost)
	}
	return done, err
}

func (r *Relay) sweepPage(ctx context.Context, after eventqueue.EventID) (Swept, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTakes)
	defer cancel()
	swept, err := r.searches.Sweep(ctx, after, sweepPage, r.config.LostAfter)
	return swept, refusal.Report(r.log, err)
}

// reportAhead logs events whose locks no worker can have taken, each once, and not too many.
func (w *walk) reportAhead(ahead []eventqueue.EventID) {
	const most = 1000
	for _, id := range ahead {
		if !w.reported[id] && len(w.reported) < most {
			w.reported[id] = true
			w.relay.log.Error("an event is locked until far in the future and does not run: set its locked_at to NULL",
				zap.Stringer(logkey.Event, id))
		}
	}
}
