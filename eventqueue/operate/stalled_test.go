package operate_test

import (
	"context"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/test/rig"
)

// hangingRules is a store with a rule whose end has come, and one that is lifted at a rate; in which a call hangs.
type hangingRules struct {
	operate.RuleStore // methods that are not called panic
	*rig.Stall
}

func (hangingRules) Woken() <-chan struct{} { return nil }

func (h hangingRules) RulesToLift(ctx context.Context, _ time.Duration) ([]operate.RuleToLift, error) {
	rule := operate.RuleOf(operate.PauseRule, rig.Scope)
	rule.Prefix, rule.Until = true, time.Now()
	released := rule
	released.Rate = 5
	return []operate.RuleToLift{{Rule: rule}, {Rule: released}}, h.In(ctx, "rules")
}

func (h hangingRules) LiftRule(ctx context.Context, _ operate.Lift) (operate.Lifted, error) {
	return operate.Lifted{Removed: true, Last: true}, h.In(ctx, "lift")
}

func (h hangingRules) Release(ctx context.Context, _ operate.RuleType, _ operate.RuleScope) (operate.Released, error) {
	return operate.Released{}, h.In(ctx, "release")
}

func (h hangingRules) WaitingScopes(ctx context.Context, scope operate.RuleScope) ([]eventqueue.Scope, error) {
	return []eventqueue.Scope{scope.Scope}, h.In(ctx, "scopes")
}

func (h hangingRules) TakeWaiting(ctx context.Context, _ operate.Waiting, _ int) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return nil, 0, h.In(ctx, "take waiting")
}

// TestHungRuleLifterIsNamed, as those of a worker are.
func TestHungRuleLifterIsNamed(t *testing.T) {
	t.Parallel()
	const loop = "loop that lifts rules whose end has come"
	rig.Stalls(t, map[string]string{"rules": loop, "lift": loop, "release": loop, "scopes": loop, "take waiting": loop},
		func(t *testing.T, s *rig.Stall) (stalled func() error, stop func()) {
			rules := rulesOn(t, hangingRules{Stall: s}, rig.NewPages(0, 0))
			return rules.Stalled, s.Run(t, rules.RunExpiry)
		})
}
