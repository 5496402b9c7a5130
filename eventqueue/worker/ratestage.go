package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
)

// limitedGroup are the claimed events of one scope, which has a rate limit: those that were put
// off before, and then the others, the oldest first.
type limitedGroup struct {
	scope  eventqueue.Scope
	events []candidate
	// exact: the claim says so. A worker that knows the limits as approximate has not learned yet
	// that they were changed.
	exact bool
}

// ask is for all events of the group; ran have begun already.
func (g *limitedGroup) ask(ran int) RateAsk {
	ask := RateAsk{Scope: g.scope, Want: len(g.events), Ran: ran}
	for i := range g.events {
		switch r := g.events[i].result; {
		case !r.PutOff && ask.FirstNew == 0:
			ask.FirstNew = r.Event.ID
		case r.PutOff:
			if ask.First == 0 {
				ask.First = r.Event.ID
			}
			ask.PutOff++
		}
	}
	return ask
}

// overLimitError is the reason for which an event was put off.
type overLimitError struct {
	delay time.Duration
	why   error
}

func (e *overLimitError) Error() string { return e.why.Error() }
func (e *overLimitError) Unwrap() error { return e.why }

var (
	errOverLimit = errors.New("the rate limit has no room")
	errRateBusy  = errors.New("another transaction is writing the counts of the rate limit")
)

// rateStage applies rate limits to claimed events.
type rateStage struct {
	part
	rates    rates
	executor *executor
}

// asksLimit reports whether a claimed event is subject to a rate limit. One that has lost its last
// permitted run, or was cancelled, does not run any more, and ends without asking.
func (s *rateStage) asksLimit(f *ClaimResult) bool {
	if !f.Limited || f.Cancelled {
		return false
	}
	return !s.executor.exhausted(f)
}

// beginLimited runs those of a batch of claimed events for which their limits have room, and puts
// off the others, with at most one statement. It blocks until the database has answered or claim
// ends, which is when the lock of an event that has not begun is half over. It returns the suspects
// for which there is room: they do not run yet.
func (s *rateStage) beginLimited(claim, work context.Context, limited []candidate, asked time.Time) (suspected []candidate) {
	if limited = s.leaveOneProbe(work, limited, asked); len(limited) == 0 {
		return nil
	}
	startAll := func(events []candidate) {
		for _, l := range events {
			if s.executor.isSuspect(l.result) {
				suspected = append(suspected, l)
			} else {
				s.executor.start(work, l, asked)
			}
		}
	}
	var unsure []limitedGroup
	wants := map[eventqueue.Scope]int{}
	for _, group := range groupByScope(limited) {
		known := 0
		if !group.exact {
			known = s.rates.admit(group.scope, len(group.events), time.Now())
		}
		startAll(group.events[:known])
		if group.events = group.events[known:]; len(group.events) > 0 {
			unsure = append(unsure, group)
			wants[group.scope] = len(group.events)
		}
	}
	if len(unsure) == 0 {
		s.rates.wake()
		return suspected
	}
	answers, err := s.takeRates(claim, s.rates.asks(unsure))
	if err != nil && claim.Err() == nil {
		s.log.Warn("could not check the rate limits; their events are released and requeued", zap.Int(logkey.Count, len(limited)), zap.Error(err))
	}
	for _, group := range unsure {
		answer := answers[group.scope]
		switch {
		case errors.Is(claim.Err(), context.Canceled): // the worker stops
			s.releaseAll(work, group.events, asked)
		case err != nil:
			s.putOffAll(work, group.events, asked, backoff.Most, err)
		case answer.Busy:
			s.putOffAll(work, group.events, asked, claimFailedDelay, errRateBusy)
		default:
			startAll(group.events[:answer.Granted])
			refused := group.events[answer.Granted:]
			putOff := max(group.ask(0).PutOff-answer.Granted, 0)
			for i, wait := range answer.Waits(len(refused), putOff, s.config.Jitter) {
				s.putOff(work, refused[i], asked, &overLimitError{wait, errOverLimit})
			}
		}
	}
	return suspected
}

// leaveOneProbe leaves one event of each handler whose circuit breaker is open, and releases the others: they would not run, and a
// limit counts what begins.
func (s *rateStage) leaveOneProbe(work context.Context, limited []candidate, asked time.Time) []candidate {
	probed := map[*breaker]bool{}
	return slices.DeleteFunc(limited, func(l candidate) bool {
		r, _ := s.executor.handlers.Lookup(&l.result.Event)
		b := breakerOf(r)
		away := b.away()
		if away == nil || !probed[b] {
			probed[b] = true
			return false
		}
		s.executor.releaseUnrun(s.executor.hold(work, l, asked, false), machine.Released, away)
		return true
	})
}

// groupByScope groups events by scope, in the order of the oldest of each.
func groupByScope(limited []candidate) (groups []limitedGroup) {
	slices.SortFunc(limited, func(a, b candidate) int {
		if a.result.PutOff != b.result.PutOff {
			if a.result.PutOff {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.result.Event.ID, b.result.Event.ID)
	})
	at := map[eventqueue.Scope]int{}
	for _, l := range limited {
		e := &l.result.Event
		scope := eventqueue.Scope{Canvas: e.Canvas, Module: e.Module, Name: e.Name}
		i, seen := at[scope]
		if !seen {
			i = len(groups)
			at[scope] = i
			groups = append(groups, limitedGroup{scope: scope})
		}
		groups[i].events = append(groups[i].events, l)
		groups[i].exact = groups[i].exact || l.result.Exact
	}
	return groups
}

// takeRates asks the database, and passes the answers to s.rates.
func (s *rateStage) takeRates(ctx context.Context, asks []RateAsk) (map[eventqueue.Scope]ratelimit.Answer, error) {
	sent := time.Now()
	answers, err := s.store.TakeRate(ctx, asks)
	if err == nil && len(answers) != len(asks) {
		err = fmt.Errorf("asked about %d scopes, and got %d answers", len(asks), len(answers))
	}
	if err != nil {
		s.rates.unanswered(asks)
		return nil, err
	}
	s.rates.learn(asks, answers, sent)
	byScope := make(map[eventqueue.Scope]ratelimit.Answer, len(asks))
	for i, ask := range asks {
		byScope[ask.Scope] = answers[i]
	}
	return byScope, nil
}

// putOffAll is for events about which nothing is known; they are tried again after one to two times
// the given wait.
func (s *rateStage) putOffAll(work context.Context, events []candidate, asked time.Time, after time.Duration, why error) {
	for _, l := range events {
		s.putOff(work, l, asked, &overLimitError{after + s.config.Jitter(after), why})
	}
}

func (s *rateStage) putOff(work context.Context, l candidate, asked time.Time, why *overLimitError) {
	s.executor.releaseUnrun(s.executor.hold(work, l, asked, false), machine.OverLimit, why)
}

// releaseAll is for events that the worker claimed but cannot ask about any more.
func (s *rateStage) releaseAll(work context.Context, events []candidate, asked time.Time) {
	for _, l := range events {
		s.executor.releaseUnrun(s.executor.hold(work, l, asked, false), machine.Released, eventqueue.ErrStopping)
	}
}

// rateReportTakes bounds the statement that reports counts.
const rateReportTakes = 10 * time.Second

// reportRates reports to the database the events that began without asking it: one statement for
// all that began during the last one, until s.rates is closed and everything is reported, or ctx
// ends. While no event begins like this it sends nothing.
func (s *rateStage) reportRates(ctx context.Context) {
	wait := backoff.New(s.config.Jitter)
	for s.rates.wait(ctx) {
		asks := s.rates.asks(nil)
		if len(asks) == 0 {
			continue
		}
		report, cancel := context.WithTimeout(ctx, rateReportTakes)
		answers, err := s.takeRates(report, asks)
		cancel()
		for _, answer := range answers {
			if answer.Busy {
				err = errRateBusy
			}
		}
		if err == nil {
			wait.Reset()
			continue
		}
		s.log.Warn("could not count runs under rate limits", zap.Int(logkey.Count, len(asks)), zap.Duration(logkey.Wait, wait.Next), zap.Error(err))
		wait.Pause(ctx)
	}
}
