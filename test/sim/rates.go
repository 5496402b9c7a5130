package sim

import (
	"context"
	"fmt"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/oracle"
)

var _ control.RateStore = (*port)(nil)

// TakeRate implements worker.RateTaker.
func (s *port) TakeRate(ctx context.Context, asks []worker.RateAsk) (answers []ratelimit.Answer, err error) {
	err = s.do(ctx, "TakeRate", describeAsks(asks), func() (string, error) {
		if answers, err = s.mem.TakeRate(ctx, asks); err != nil {
			return "", err
		}
		granted := make([]int, len(asks))
		for i, ask := range asks {
			granted[i] = answers[i].Granted
			s.p.w.add(oracle.Record{Kind: oracle.Granted, Actor: s.p.name, Scope: ask.Scope, Granted: answers[i].Granted, Ran: ask.Ran})
		}
		return fmt.Sprint(granted), nil
	})
	return onlyIf(answers, err), err
}

func describeAsks(asks []worker.RateAsk) string {
	text := make([]string, len(asks))
	for i, ask := range asks {
		text[i] = fmt.Sprintf("%s want %d ran %d", ask.Scope, ask.Want, ask.Ran)
	}
	return fmt.Sprint(text)
}

// SetRateLimit implements control.RateStore.
func (s *port) SetRateLimit(ctx context.Context, limit control.RateLimit) (before *control.RateLimit, err error) {
	err = s.do(ctx, "SetRateLimit", fmt.Sprint(limit), func() (string, error) {
		if before, err = s.mem.SetRateLimit(ctx, limit); err == nil {
			s.p.w.rateChanged(limit)
		}
		return "", err
	})
	return onlyIf(before, err), err
}

// RemoveRateLimit implements control.RateStore.
func (s *port) RemoveRateLimit(ctx context.Context, scope eventqueue.Scope) (removed bool, err error) {
	err = s.do(ctx, "RemoveRateLimit", fmt.Sprint(scope), func() (string, error) {
		if removed, err = s.mem.RemoveRateLimit(ctx, scope); err == nil {
			s.p.w.rateChanged(control.RateLimit{Scope: scope})
		}
		return fmt.Sprint(removed), err
	})
	return onlyIf(removed, err), err
}

// RateLimits implements control.RateStore. Nobody asks here.
func (s *port) RateLimits(ctx context.Context, canvas *eventqueue.CanvasID) ([]control.RateStatus, error) {
	return s.mem.RateLimits(ctx, canvas)
}

// CheckRate implements control.RateStore. Nobody asks here.
func (s *port) CheckRate(ctx context.Context, scope eventqueue.Scope) (ratelimit.Answer, error) {
	return s.mem.CheckRate(ctx, scope)
}

// TakeLimited implements control.RateStore.
func (s *port) TakeLimited(ctx context.Context, scope eventqueue.Scope, after control.RatePlace, limit int) (due []eventqueue.Notification, next control.RatePlace, err error) {
	err = s.do(ctx, "TakeLimited", fmt.Sprint(scope, " after ", after), func() (string, error) {
		due, next, err = s.mem.TakeLimited(ctx, scope, after, limit)
		for _, n := range due {
			s.p.w.add(oracle.Record{Kind: oracle.MadeDue, Actor: s.p.name, Event: n.Event, Due: s.p.w.row(n.Event).DelayUntil})
		}
		return eventsOf(due), err
	})
	return onlyIf(due, err), onlyIf(next, err), err
}

func (w *world) rateChanged(limit control.RateLimit) {
	now := w.memory.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["rate limit changed"]++
	w.history.Rates = append(w.history.Rates, oracle.RateChange{At: now, Limit: limit})
}

// drawRate draws a limit that is soon reached.
func drawRate(d dice) control.RateLimit {
	limit := control.RateLimit{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}}, Mode: ratelimit.Exact}
	if d.chance(0.5) {
		limit.Module, limit.Name = "WORKER", jobs[d.IntN(len(jobs))]
	}
	if d.chance(0.4) {
		limit.Mode = ratelimit.Approximate
	}
	limit.PerMinute = 1 + d.IntN(5)
	if d.chance(0.2) {
		limit.PerDay = 5 + d.IntN(20)
	}
	return limit
}

// mustLimitRate sets a limit before anything runs.
func (w *world) mustLimitRate(limit control.RateLimit) {
	if _, err := w.memory.SetRateLimit(context.Background(), limit); err != nil {
		panic(err)
	}
	w.rateChanged(limit)
	w.note("%s may begin %d per minute, %d per day, %s", limit.Scope, limit.PerMinute, limit.PerDay, limit.Mode)
}

// changeRates sets or removes a limit. What fails may have happened, or half of it.
func (p *process) changeRates(ctx context.Context, rates *control.RateLimits, d dice) {
	limit := drawRate(d)
	if d.chance(0.7) {
		_, _ = rates.Set(ctx, limit)
	} else {
		_, _, _ = rates.Remove(ctx, limit.Scope)
	}
}

// liftDaily removes the limits that would keep events for days, and reports whether
// none is left and what they had put off is due.
func (p *process) liftDaily(ctx context.Context, rates *control.RateLimits) bool {
	if p.w.rates == 0 {
		return true
	}
	scopes := []eventqueue.Scope{}
	for _, r := range p.w.memory.Rates() {
		if r.PerDay > 0 {
			scopes = append(scopes, r.Scope)
		}
	}
	for canvas := byte(1); canvas <= 3; canvas++ { // whatever an operation left half done
		scopes = append(scopes, eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}})
	}
	slices.SortStableFunc(scopes, func(a, b eventqueue.Scope) int { return slices.Compare([]string{a.String()}, []string{b.String()}) })
	all := true
	for _, scope := range scopes {
		_, _, err := rates.Remove(ctx, scope)
		all = all && err == nil
	}
	return all
}
