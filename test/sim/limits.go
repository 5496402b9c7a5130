package sim

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
)

// limitAtFirst sets the limits that a seed begins with. Some never change.
func (w *world) limitAtFirst() {
	if w.dice.chance(0.4) {
		return
	}
	w.limits = 1 + w.dice.IntN(2)
	for range 1 + w.dice.IntN(4) {
		limit := drawLimit(w.dice)
		if _, err := w.tables.store.SetConcurrencyLimit(context.Background(), limit); err != nil {
			panic(err)
		}
		w.limitChanged(limit)
		w.note("%s may run %d at once", limit, limit.Max)
	}
}

// drawLimit draws a limit that is soon reached.
func drawLimit(d dice) operate.ConcurrencyLimit {
	limit := operate.ConcurrencyLimit{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Max: 1 + d.IntN(3)}
	switch d.IntN(5) {
	case 0, 1:
		limit.Module, limit.Name = "WORKER", jobs[d.IntN(len(jobs))]
	case 2:
		if limit.EveryKey = d.chance(0.5); !limit.EveryKey {
			limit.Key = groupKeys[d.IntN(len(groupKeys))]
		}
	}
	return limit
}

// changeLimits sets or removes a limit.
func (p *process) changeLimits(ctx context.Context, limits *operate.ConcurrencyLimits, d dice) {
	limit := drawLimit(d)
	// What fails may have happened, or half of it: that is the relay's to mend.
	if d.chance(0.7) {
		_ = limits.Set(ctx, limit)
	} else {
		_, _ = limits.Remove(ctx, limit)
	}
}

// linger has handlers held back for long after the attack, with the last of the
// faults still in the tables: what is left of that must not keep others from running.
func (p *process) linger(ctx context.Context, rules *operate.Rules, d dice) {
	for canvas := byte(1); canvas <= 3; canvas++ {
		for _, name := range heldJobs {
			scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}, Module: "WORKER", Name: name}
			p.changeRule(ctx, rules, operate.LiftOf(operate.PauseRule, scope), true)
		}
		for _, name := range jobs[2:] {
			p.provoke(ctx, eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}, Module: "WORKER", Name: name})
		}
	}
	backoff.Sleep(ctx, longestWait+d.between(0, 2*longestWait))
}
