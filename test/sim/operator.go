package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/internal/backoff"
	"eventsv2/test/oracle"
)

// startOperator starts somebody who pauses, blocks, lifts and emits during the attack,
// and afterwards lifts whatever is left.
func (w *world) startOperator() {
	p := w.newProcess("op")
	rules, err := control.NewRules(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	limits, err := control.NewConcurrencyLimits(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	rates, err := control.NewRateLimits(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
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
		for ctx.Err() == nil && !p.liftDaily(ctx, rates) {
			backoff.Sleep(ctx, time.Second)
		}
	})
	w.operator = p
}

// changeRules adds or lifts a rule, now and then several times at once.
func (p *process) changeRules(ctx context.Context, rules *control.Rules, d dice) {
	rule := control.PauseRule
	if d.chance(0.4) {
		rule = control.BlockRule
	}
	scope := eventqueue.Scope{Canvas: eventqueue.CanvasID{byte(1 + d.IntN(3))}, Module: "WORKER", Name: jobs[d.IntN(2)]}
	add := d.chance(0.5)
	times := 1
	if d.chance(0.2) {
		times = 2 + d.IntN(2)
	}
	var calls sync.WaitGroup
	if d.chance(0.3) {
		calls.Go(func() { p.provoke(ctx, scope) })
	}
	for range times {
		calls.Go(func() { p.changeRule(ctx, rules, rule, scope, add) })
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

func (p *process) changeRule(ctx context.Context, rules *control.Rules, rule control.RuleType, scope eventqueue.Scope, add bool) bool {
	asked, done := oracle.RuleAsked, oracle.RuleAdded
	if !add {
		asked, done = oracle.LiftAsked, oracle.RuleLifted
	}
	record := oracle.Record{Rule: rule, Scope: scope}
	_ = p.do(ctx, call{op: string(asked), key: fmt.Sprint(rule, " of ", scope)}, func() (string, error) {
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
		record.Changed, err = rules.Add(ctx, rule, scope)
	} else {
		record.Changed, _, err = rules.Lift(ctx, rule, scope)
	}
	if err != nil {
		return false
	}
	record.Kind = done
	p.w.add(record)
	return true
}

// liftAll lifts every rule that there is, and reports whether none is left.
func (p *process) liftAll(ctx context.Context, rules *control.Rules) bool {
	all := true
	for _, r := range p.w.memory.Rules() {
		all = p.changeRule(ctx, rules, r.Type, r.Scope, false) && all
	}
	return all
}
