package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// startOperator starts somebody who pauses, blocks, lifts, changes and emits during the attack,
// and afterwards lifts whatever is left.
func (w *world) startOperator() {
	p := w.newProcess("op")
	rules, err := operate.NewRules(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	limits, err := operate.NewConcurrencyLimits(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	rates, err := operate.NewRateLimits(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	changes := p.newChanger()
	d := newDice(w.seed, "operator")
	p.run(func(ctx context.Context) {
		for backoff.Sleep(ctx, d.between(0, 2*w.ruleGap)) && !w.healed() {
			if w.limits > 1 && d.chance(0.3) {
				p.changeLimits(ctx, limits, d)
				continue
			}
			if w.rates > 1 && d.chance(0.3) {
				p.changeRates(ctx, rates, d)
				continue
			}
			if w.changes && d.chance(0.5) {
				p.changeEvents(ctx, changes, d)
				continue
			}
			p.changeRules(ctx, rules, d)
		}
		if w.lingers {
			for backoff.Sleep(ctx, 200*time.Millisecond) && !w.hunted.Load() {
				p.provoke(ctx, eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Module: "WORKER", Name: heldJobs[d.IntN(len(heldJobs))]})
			}
			p.linger(ctx, rules, d)
		}
		for ctx.Err() == nil && !p.liftAll(ctx, rules) {
			backoff.Sleep(ctx, time.Second)
		}
		for w.lastSilence && backoff.Sleep(ctx, d.between(0, time.Minute)) && !w.spoken.Load() {
			p.provoke(ctx, eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Module: "WORKER", Name: jobs[d.IntN(len(jobs))]})
		}
		for w.lastRefusals && backoff.Sleep(ctx, d.between(0, 5*time.Second)) && !w.spoken.Load() {
			p.provokeMany(ctx, d)
		}
		for ctx.Err() == nil && !p.liftDaily(ctx, rates) {
			backoff.Sleep(ctx, time.Second)
		}
	})
	w.operator = p
}

// changeRules adds or lifts a rule, now and then several times at once.
func (p *process) changeRules(ctx context.Context, rules *operate.Rules, d dice) {
	rule := operate.PauseRule
	if d.chance(0.4) {
		rule = operate.BlockRule
	}
	scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Module: "WORKER", Name: jobs[d.IntN(2)]}
	add := d.chance(0.5)
	lift := operate.LiftOf(rule, scope)
	lift.Prefix = d.chance(0.2)
	if d.chance(0.2) {
		lift.Modifier = "_"
	}
	if d.chance(0.3) {
		lift.Rate = 1 + d.IntN(5)
	}
	times := 1
	if d.chance(0.2) {
		times = 2 + d.IntN(2)
	}
	var calls sync.WaitGroup
	if d.chance(0.3) {
		calls.Go(func() { p.provoke(ctx, scope) })
	}
	for range times {
		calls.Go(func() { p.changeRule(ctx, rules, lift, add) })
	}
	calls.Wait()
}

// provoke emits an event that workers look at just when a rule for it changes.
func (p *process) provoke(ctx context.Context, scope eventqueue.Scope) {
	w := p.w
	w.mu.Lock()
	w.serial++
	serial := w.serial
	w.mu.Unlock()
	e := eventqueue.NewEvent{Canvas: scope.Canvas, Module: scope.Module, Name: scope.Name, Modifier: "_"}
	e.Value = p.payload(&e, payload{Serial: serial})
	_, _ = p.queue.Emit(ctx, e) // whether it was committed is the history's to say
}

// provokeMany emits events that workers claim together, as long as the database refuses some rows.
func (p *process) provokeMany(ctx context.Context, d dice) {
	events := make([]eventqueue.NewEvent, 2+d.IntN(4))
	for i := range events {
		events[i] = p.draw(d)
	}
	_, _ = p.queue.EmitMany(ctx, events) // as above
}

// changeRule adds a rule, or lifts it; at a rate, if it has one. That such a lift has returned says nothing, so it is
// recorded as one that has not, and as one that somebody has to end.
func (p *process) changeRule(ctx context.Context, rules *operate.Rules, lift operate.Lift, add bool) bool {
	asked, done := oracle.RuleAsked, oracle.RuleAdded
	if !add {
		asked, done = oracle.LiftAsked, oracle.RuleLifted
	}
	record := oracle.Record{Rule: lift.Type, Scope: lift.Scope, Width: oracle.Width{Prefix: lift.Prefix, Modifier: lift.Modifier}}
	_ = p.do(ctx, call{op: string(asked), key: fmt.Sprint(lift.Type, " of ", lift.RuleScope)}, func() (string, error) {
		p.w.mu.Lock()
		p.w.calls++
		record.Call = p.w.calls
		p.w.mu.Unlock()
		record.Kind = asked
		p.w.add(record)
		return "", nil
	})
	var err error
	if add {
		record.Changed, err = rules.AddRule(ctx, operate.Rule{Type: lift.Type, RuleScope: lift.RuleScope})
	} else {
		var result operate.LiftResult
		result, err = rules.LiftRule(ctx, lift)
		record.Changed = result.Removed
		if lift.Rate > 0 {
			lift.Rate = 0
			p.w.mu.Lock()
			p.w.ramps[lift] = true
			p.w.faults["rule lifted at a rate"]++
			if result.GoesOn {
				p.w.faults["rule lifted at a rate, and cron goes on"]++
			}
			p.w.mu.Unlock()
			return err == nil
		}
	}
	if err != nil {
		return false
	}
	record.Kind = done
	p.w.add(record)
	return true
}

// liftAll lifts every rule that there is, or has been lifted at a rate, and reports whether none is left.
func (p *process) liftAll(ctx context.Context, rules *operate.Rules) bool {
	all := true
	for _, lift := range p.w.tables.rules() {
		all = p.changeRule(ctx, rules, lift, false) && all
	}
	p.w.mu.Lock()
	ramps := slices.SortedFunc(maps.Keys(p.w.ramps), func(a, b operate.Lift) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(fmt.Sprint(a.RuleScope), fmt.Sprint(b.RuleScope)))
	})
	p.w.mu.Unlock()
	for _, lift := range ramps {
		all = p.changeRule(ctx, rules, lift, false) && all
	}
	return all
}
