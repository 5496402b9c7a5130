package operate

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"eventsv2/internal/backoff"
	"eventsv2/internal/logkey"
	"eventsv2/internal/refusal"
	"eventsv2/internal/sqlstate"
)

const (
	// ExpiryInterval is how late RunExpiry lifts a rule at most, and the least time between two looks because
	// a relay was woken.
	ExpiryInterval = 10 * time.Second
	// expiryLook is how often RunExpiry looks for rules at least: what wakes it may have been lost.
	expiryLook = time.Minute
	// releaseInterval is how often it lets run further events of rules that are lifted at a rate, while there is one.
	releaseInterval = time.Second
	// leastRest is how long it rests at least, if the end of a rule is as good as there.
	leastRest = 100 * time.Millisecond
)

// refusedWait is at most how long a rule that cannot be lifted is left alone before it is tried again.
const refusedWait = time.Minute

// statementTakes bounds a statement of RunExpiry.
const statementTakes = 30 * time.Second

// step begins a statement. In RunExpiry it has its time, and the loop twice that: what is found is published
// after it.
func (r *Rules) step(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.loop == nil {
		return ctx, func() {}
	}
	r.loop.Within(2 * statementTakes)
	return context.WithTimeout(ctx, statementTakes)
}

// Stalled returns an error that says that RunExpiry has not gone round for much longer than its calls may
// take, or nil; see Stalled of worker.Worker.
func (r *Rules) Stalled() error { return r.rounds.Stalled() }

// LiftExpired lifts the rules whose end has passed, as LiftRule does, lets run the next events of those that are
// lifted at a rate, and returns the rules that are gone by that. goesOn says that another one is lifted at a rate. Any
// number of callers may do so at once: each rule is returned, and its events notified, by one of them. A rule
// that could not be lifted is left to the next call, and does not keep the others.
func (r *Rules) LiftExpired(ctx context.Context) (lifted []Rule, goesOn bool, err error) {
	lifted, next, err := r.liftExpired(ctx, 0)
	return lifted, next == releaseInterval, err
}

// liftExpired also returns how long it takes until a rule has to be lifted, if it is less than within.
func (r *Rules) liftExpired(ctx context.Context, within time.Duration) (lifted []Rule, next time.Duration, err error) {
	next = within
	asking, done := r.step(ctx)
	rules, err := r.store.RulesToLift(asking, within)
	done()
	if err != nil {
		return nil, next, err
	}
	var waiting []ruleID
	if r.refused != nil {
		waiting = r.refused.Waiting()
	}
	var errs []error
	for _, due := range rules {
		rule := due.Rule
		if due.In > 0 {
			next = min(next, due.In)
			continue
		}
		if slices.Contains(waiting, ruleID{rule.Type, rule.RuleScope}) {
			next = min(next, ExpiryInterval)
			continue
		}
		removed, rest, err := r.liftOne(ctx, rule)
		if !removed && r.leave(rule, err) {
			next = min(next, ExpiryInterval)
			continue
		}
		errs = append(errs, err)
		if rest {
			next = releaseInterval
		}
		if removed {
			lifted = append(lifted, rule)
		}
	}
	return lifted, next, errors.Join(errs...)
}

// leave reports whether a rule is left alone for a while, and logs why: the database refuses to lift it, or
// SQL has written what no rule can be. Only RunExpiry leaves any.
func (r *Rules) leave(rule Rule, err error) bool {
	if r.refused == nil {
		return false
	}
	id := ruleID{rule.Type, rule.RuleScope}
	if err == nil || !sqlstate.Refused(err) && rule.RuleScope.Validate() == nil {
		r.refused.Remove([]ruleID{id})
		return false
	}
	wait := r.refused.Put(id, refusedWait)
	r.queue.Logger().Error("cannot lift this rule, whose end has come or that is lifted at a rate; the others are lifted, and this one is tried again by itself, "+
		"in growing intervals; correct or delete its row of scheduling_rules, check the triggers and constraints of that table, and that the role has the rights of "+
		"queue_cron, or lift it with eventctl",
		zap.String("rule", string(rule.Type)), zap.Stringer("scope", rule.RuleScope), zap.Duration(logkey.Wait, wait), zap.Error(err))
	return true
}

func (r *Rules) liftOne(ctx context.Context, rule Rule) (removed, goesOn bool, err error) {
	if rule.Rate == 0 {
		result, err := r.LiftRule(ctx, Lift{Type: rule.Type, RuleScope: rule.RuleScope, Expired: true})
		return result.Removed, false, err
	}
	released, _, err := r.release(ctx, rule.Type, rule.RuleScope)
	return released.Removed, released.GoesOn, err
}

// RunExpiry calls LiftExpired at once, whenever the end of a rule comes, each second while a rule is lifted at a
// rate, and once a minute in any case, until ctx ends, which is no error. It learns of a rule that is added meanwhile if a
// relay runs in this program. It logs what it
// lifts, and what fails: that is tried again after ExpiryInterval; a rule that the database refuses to lift by itself,
// in growing intervals. Any number of programs may run it.
func (r *Rules) RunExpiry(ctx context.Context) error {
	wait := time.Duration(0)
	own := &Rules{store: r.store, queue: r.queue, loop: r.rounds.Loop("loop that lifts rules whose end has come"),
		refused: &refusal.Rows[ruleID]{}}
	defer own.loop.Ends()
	for first := true; first || own.rest(ctx, wait); first = false {
		lifted, next, err := own.liftExpired(ctx, expiryLook)
		own.loop.Within(expiryLook)
		if wait = max(next, leastRest); err != nil {
			wait = min(wait, ExpiryInterval)
		}
		log := r.queue.Logger()
		for _, rule := range lifted {
			fields := []zap.Field{zap.String("rule", string(rule.Type)), zap.Stringer("scope", rule.RuleScope),
				zap.String("reason", rule.Reason), zap.String("actor", rule.Actor)}
			if rule.Rate > 0 {
				log.Info("lifted a rule at a rate: nothing waits any more", append(fields, zap.Int("per_second", rule.Rate))...)
			} else {
				log.Info("lifted a rule whose end has come", append(fields, zap.Time("until", rule.Until))...)
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("could not lift the rules whose end has come, or that are lifted at a rate; trying again: "+
				"if this goes on, see that Postgres can be reached and that the role has the rights of queue_cron, or lift them with eventctl",
				zap.Duration(logkey.Wait, wait), zap.Error(err))
		}
	}
	return nil
}

// rest waits until rules are looked for again, and returns false when ctx ends.
func (r *Rules) rest(ctx context.Context, wait time.Duration) bool {
	least := min(wait, ExpiryInterval)
	if !backoff.Sleep(ctx, least) {
		return false
	}
	timer := time.NewTimer(wait - least)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.store.Woken():
	case <-ctx.Done():
		return false
	}
	return true
}
