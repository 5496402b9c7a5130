package eventqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue/machine"
)

// limitedGroup are the claimed events of one scope, which has a rate limit, oldest
// first.
type limitedGroup struct {
	scope  Scope
	events []lookedAt
	// exact: by the claim. A worker that knows them as approximate has not been told yet
	// that they were changed.
	exact bool
}

// overLimitError is why an event was put off.
type overLimitError struct {
	delay time.Duration
	why   error
}

func (e *overLimitError) Error() string { return e.why.Error() }
func (e *overLimitError) Unwrap() error { return e.why }

var (
	errOverLimit = errors.New("the rate limit has no room")
	errRateBusy  = errors.New("somebody else is writing the counts of the rate limit")
)

// asksLimit tells whether a limit is to be asked about a claimed event. One that has
// lost its last run does not run any more, and ends without asking.
func (w *Worker) asksLimit(f *Found) bool {
	if !f.Limited {
		return false
	}
	r, _ := w.handlers.find(&f.Event)
	return !givenUp(f.Facts.Lock == machine.LockStale, f.Event.Retries, r.policy)
}

// beginLimited runs those of a batch of claimed events that their limits have room for,
// and puts off the others, with at most one statement. It blocks until the database
// has answered or claim ends, which is when the lock of an event that has not begun is
// half over.
func (w *Worker) beginLimited(claim, work context.Context, limited []lookedAt, asked time.Time) {
	if len(limited) == 0 {
		return
	}
	var unsure []limitedGroup
	wants := map[Scope]int{}
	for _, group := range grouped(limited) {
		known := 0
		if !group.exact {
			known = w.rates.admit(group.scope, len(group.events), time.Now())
		}
		w.startAll(work, group.events[:known], asked)
		if group.events = group.events[known:]; len(group.events) > 0 {
			unsure = append(unsure, group)
			wants[group.scope] = len(group.events)
		}
	}
	if len(unsure) == 0 {
		w.rates.wake()
		return
	}
	answers, err := w.takeRates(claim, w.rates.asks(unsure))
	if err != nil && claim.Err() == nil {
		w.log.Warn("could not ask the rate limits; their events are put off", zap.Int(logCount, len(limited)), zap.Error(err))
	}
	for _, group := range unsure {
		answer := answers[group.scope]
		switch {
		case errors.Is(claim.Err(), context.Canceled): // the worker stops
			w.releaseAll(work, group.events, asked)
		case err != nil:
			w.putOffAll(work, group.events, asked, maxFailureWait, err)
		case answer.Busy:
			w.putOffAll(work, group.events, asked, claimFailedDelay, errRateBusy)
		default:
			w.startAll(work, group.events[:answer.Granted], asked)
			refused := group.events[answer.Granted:]
			for i, wait := range answer.waits(len(refused), w.config.Jitter) {
				w.putOff(work, refused[i], asked, &overLimitError{wait, errOverLimit})
			}
		}
	}
}

// grouped puts events in groups, in the order of the oldest of each.
func grouped(limited []lookedAt) (groups []limitedGroup) {
	slices.SortFunc(limited, func(a, b lookedAt) int { return cmp.Compare(a.found.Event.ID, b.found.Event.ID) })
	at := map[Scope]int{}
	for _, l := range limited {
		e := &l.found.Event
		scope := Scope{Canvas: e.Canvas, Module: e.Module, Name: e.Name}
		i, seen := at[scope]
		if !seen {
			i = len(groups)
			at[scope] = i
			groups = append(groups, limitedGroup{scope: scope})
		}
		groups[i].events = append(groups[i].events, l)
		groups[i].exact = groups[i].exact || l.found.Exact
	}
	return groups
}

// takeRates asks the database, and tells w.rates what has become of it.
func (w *Worker) takeRates(ctx context.Context, asks []RateAsk) (map[Scope]RateAnswer, error) {
	sent := time.Now()
	answers, err := w.store.TakeRate(ctx, asks)
	if err == nil && len(answers) != len(asks) {
		err = fmt.Errorf("asked about %d scopes, and got %d answers", len(asks), len(answers))
	}
	if err != nil {
		w.rates.unanswered(asks)
		return nil, err
	}
	w.rates.learn(asks, answers, sent)
	byScope := make(map[Scope]RateAnswer, len(asks))
	for i, ask := range asks {
		byScope[ask.Scope] = answers[i]
	}
	return byScope, nil
}

func (w *Worker) startAll(work context.Context, events []lookedAt, asked time.Time) {
	for _, l := range events {
		w.start(work, l, asked)
	}
}

// putOffAll is for events about which nothing is known; they come back one to two times
// after.
func (w *Worker) putOffAll(work context.Context, events []lookedAt, asked time.Time, after time.Duration, why error) {
	for _, l := range events {
		w.putOff(work, l, asked, &overLimitError{after + w.config.Jitter(after), why})
	}
}

func (w *Worker) putOff(work context.Context, l lookedAt, asked time.Time, why *overLimitError) {
	w.giveUp(w.hold(work, l, asked), machine.OverLimit, why)
}

// releaseAll is for events about which the worker has to stop asking.
func (w *Worker) releaseAll(work context.Context, events []lookedAt, asked time.Time) {
	for _, l := range events {
		w.giveUp(w.hold(work, l, asked), machine.Released, ErrStopping)
	}
}

// giveUp gives a claimed event back without having run it, by way of the finisher,
// which writes many at once.
func (w *Worker) giveUp(x *execution, verdict machine.Label, why error) {
	defer x.ctx.release()
	f := x.finished(verdict, why)
	w.runs.end(x, func() { w.ends.put(f) })
}

// rateReportTakes bounds the statement that tells counts.
const rateReportTakes = 10 * time.Second

// reportRates tells the database what has begun without asking it, whatever has come
// together while the last statement was under way, until w.rates is closed and has
// nothing left to tell, or ctx ends. While nothing begins so it sends nothing.
func (w *Worker) reportRates(ctx context.Context) {
	wait := newFailureWait(w.config.Jitter)
	for w.rates.wait(ctx) {
		asks := w.rates.asks(nil)
		if len(asks) == 0 {
			continue
		}
		report, cancel := context.WithTimeout(ctx, rateReportTakes)
		answers, err := w.takeRates(report, asks)
		cancel()
		for _, answer := range answers {
			if answer.Busy {
				err = errRateBusy
			}
		}
		if err == nil {
			wait.reset()
			continue
		}
		w.log.Warn("could not count events that rate limits let run", zap.Int(logCount, len(asks)), zap.Duration(logWait, wait.next), zap.Error(err))
		wait.pause(ctx)
	}
}
