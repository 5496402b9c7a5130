package sim

import (
	"context"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
)

// drawRate draws a limit that is soon reached.
func drawRate(d dice) operate.RateLimit {
	limit := operate.RateLimit{Scope: eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}}, Mode: ratelimit.Exact}
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
func (w *world) mustLimitRate(limit operate.RateLimit) {
	if _, err := w.tables.store.SetRateLimit(context.Background(), limit); err != nil {
		panic(err)
	}
	w.rateChanged(limit)
	w.note("%s may begin %d per minute, %d per day, %s", limit.Scope, limit.PerMinute, limit.PerDay, limit.Mode)
}

// changeRates sets or removes a limit, or does both and puts it back, within the window. What fails may have happened, or
// half of it.
func (p *process) changeRates(ctx context.Context, rates *operate.RateLimits, d dice) {
	limit := drawRate(d)
	set, remove, back := d.chance(0.8), d.chance(0.4), d.chance(0.5)
	if set {
		_, _ = rates.Set(ctx, limit)
	}
	if remove {
		_, _, _ = rates.Remove(ctx, limit.Scope)
	}
	if back {
		lower := limit
		lower.PerMinute, lower.PerDay = 1, 0
		_, _ = rates.Set(ctx, lower)
		_, _ = rates.Set(ctx, limit)
	}
}

// liftDaily removes the limits that would keep events for days, and reports whether
// none is left and what they had put off is due.
func (p *process) liftDaily(ctx context.Context, rates *operate.RateLimits) bool {
	if p.w.rates == 0 {
		return true
	}
	scopes := []eventqueue.Scope{}
	scopes = append(scopes, p.w.tables.daily()...)
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
