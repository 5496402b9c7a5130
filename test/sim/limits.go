package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/test/oracle"
)

// SetRunningLimit implements control.RunningLimitStore.
func (s *port) SetRunningLimit(ctx context.Context, limit control.RunningLimit) (before bool, err error) {
	err = s.do(ctx, "SetRunningLimit", fmt.Sprint(limit, " to ", limit.Max), func() (string, error) {
		if before, err = s.mem.SetRunningLimit(ctx, limit); err != nil {
			return "", err
		}
		s.p.w.limitChanged(limit)
		return fmt.Sprintf("before %t", before), nil
	})
	return onlyIf(before, err), err
}

// RunningLimits implements control.RunningLimitStore.
func (s *port) RunningLimits(ctx context.Context, canvas eventqueue.CanvasID) (limits []control.RunningLimit, err error) {
	err = s.do(ctx, "RunningLimits", canvas.String(), func() (string, error) {
		limits, err = s.mem.RunningLimits(ctx, canvas)
		return "", err
	})
	return onlyIf(limits, err), err
}

// FillGroups implements control.RunningLimitStore.
func (s *port) FillGroups(ctx context.Context, limit control.RunningLimit, after string) (advanced []eventqueue.Event, next string, err error) {
	err = s.do(ctx, "FillGroups", fmt.Sprint(limit, " after ", after), func() (string, error) {
		defer s.p.w.takingBack(s.p)()
		advanced, next, err = s.mem.FillGroups(ctx, limit, after)
		return fmt.Sprint(idsOf(advanced, func(e eventqueue.Event) eventqueue.EventID { return e.ID })), err
	})
	return onlyIf(advanced, err), onlyIf(next, err), err
}

func (w *world) limitChanged(limit control.RunningLimit) {
	now := w.memory.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["limit of running events changed"]++
	w.history.Limits = append(w.history.Limits, oracle.LimitChange{At: now, Limit: limit})
}

// limitAtFirst sets the limits that a seed begins with. Some never change.
func (w *world) limitAtFirst() {
	if w.dice.chance(0.4) {
		return
	}
	w.limits = 1 + w.dice.IntN(2)
	for range 1 + w.dice.IntN(4) {
		limit := drawLimit(w.dice)
		if _, err := w.memory.SetRunningLimit(context.Background(), limit); err != nil {
			panic(err)
		}
		w.limitChanged(limit)
		w.note("%s may run %d at once", limit, limit.Max)
	}
}

// drawLimit draws a limit that is soon reached.
func drawLimit(d dice) control.RunningLimit {
	limit := control.RunningLimit{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Max: 1 + d.IntN(3)}
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
func (p *process) changeLimits(ctx context.Context, limits *control.RunningLimits, d dice) {
	limit := drawLimit(d)
	// What fails may have happened, or half of it: that is the relay's to mend.
	if d.chance(0.7) {
		_ = limits.Set(ctx, limit)
	} else {
		_, _ = limits.Remove(ctx, limit)
	}
}

// heldJobs are the handlers that stay paused after the attack.
var heldJobs = jobs[:2]

// hunt kills a worker that runs an event of one of them and has a turn of a canvas or a
// handler with it, as soon as there is one, and not after so many looks.
func (n *nemesis) hunt(claims int) {
	w := n.w
	limited := map[eventqueue.EventID]bool{}
	for _, place := range w.memory.Places() {
		limited[place.Event] = limited[place.Event] || place.Stage > 1 && place.MayRun
	}
	for _, row := range w.memory.Events() {
		if holder := w.holder(row.ID); limited[row.ID] && !row.LockedAt.IsZero() && slices.Contains(heldJobs, row.Name) && holder != nil {
			w.note("nemesis: kill %s, which runs %s", holder.name, row.ID)
			w.faults["worker killed with a turn, and its handler paused for minutes"]++
			w.hunted.Store(true)
			n.kill(holder)
			return
		}
	}
	if claims == 0 {
		w.hunted.Store(true)
		return
	}
	n.later(100*time.Millisecond, "", func() { n.hunt(claims - 1) })
}

// holder is the worker that claimed an event last, when it lives.
func (w *world) holder(id eventqueue.EventID) *process {
	for i := len(w.history.Records) - 1; i >= 0; i-- {
		if r := &w.history.Records[i]; r.Kind == oracle.Claimed && r.Event == id {
			for _, p := range w.workers {
				if p.name == r.Actor && !p.dead && !p.frozen {
					return p
				}
			}
			return nil
		}
	}
	return nil
}

// linger has handlers held back for long after the attack, with the last of the
// faults still in the tables: what is left of that must not keep others from running.
func (p *process) linger(ctx context.Context, rules *control.Rules, d dice) {
	for canvas := byte(1); canvas <= 3; canvas++ {
		for _, name := range heldJobs {
			scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}, Module: "WORKER", Name: name}
			p.changeRule(ctx, rules, control.PauseRule, scope, true)
		}
		for _, name := range jobs[2:] {
			p.provoke(ctx, eventqueue.Scope{Canvas: eventqueue.CanvasID{canvas}, Module: "WORKER", Name: name})
		}
	}
	p.w.pause(ctx, progress+d.between(0, 2*progress))
}

// takingBack records the locks that are gone when an operation that gives turns has
// happened: such an operation ends no run, so they had expired.
func (w *world) takingBack(p *process) (done func()) {
	before := w.memory.Events()
	return func() {
		locked := map[eventqueue.EventID]bool{}
		for _, was := range before {
			locked[was.ID] = !was.LockedAt.IsZero()
		}
		for _, now := range w.memory.Events() {
			if !locked[now.ID] || !now.LockedAt.IsZero() {
				continue
			}
			w.faults["turn of a dead run taken back"]++
			w.add(oracle.Record{Kind: oracle.TakenBack, Actor: p.name, Event: now.ID, Retries: int(now.Retries), LockTimeout: lockTimeout})
		}
	}
}
