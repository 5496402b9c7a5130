package memstore

import (
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// AddRule implements eventqueue.RuleStore. A claim is one step, so none is under
// way.
func (s *Store) AddRule(ctx context.Context, t eventqueue.RuleType, scope eventqueue.Scope) (added bool, err error) {
	err = s.atOnce(ctx, OpAddRule, func() {
		s.db.lastRule++ // the sequence moves on a conflict, too
		if slices.Contains(s.db.rulesOf(scope), t) {
			return
		}
		added = true
		s.db.rules = append(s.db.rules, RuleRow{s.db.lastRule, eventqueue.Rule{Type: t, Scope: scope, CreatedAt: s.db.now()}})
	})
	return added && err == nil, err
}

// LiftRule implements eventqueue.RuleStore.
func (s *Store) LiftRule(ctx context.Context, t eventqueue.RuleType, scope eventqueue.Scope) (eventqueue.Lifted, error) {
	var lifted eventqueue.Lifted
	err := s.atOnce(ctx, OpLiftRule, func() {
		before := len(s.db.rules)
		s.db.rules = slices.DeleteFunc(s.db.rules, func(r RuleRow) bool { return r.Type == t && r.Scope == scope })
		lifted = eventqueue.Lifted{
			Removed: len(s.db.rules) < before,
			Last:    len(s.db.rulesOf(scope)) == 0,
			At:      s.db.now(),
		}
	})
	if err != nil {
		return eventqueue.Lifted{}, err
	}
	return lifted, nil
}

// TakeWaiting implements eventqueue.RuleStore.
func (s *Store) TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpTakeWaiting, func() {
		horizon := s.db.now().Add(eventqueue.MaxRequeue)
		var page []*record
		page, next = s.db.page(after, limit, func(r *Row) bool { return r.scope() == scope })
		for _, r := range page {
			if r.writer == nil && r.Line != lineWaits && !r.DelayUntil.After(horizon) &&
				(r.NotifiedAt.IsZero() || r.NotifiedAt.Before(since)) {
				taken = append(taken, s.db.notify(r))
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return taken, next, nil
}

func (db *database) rulesOf(scope eventqueue.Scope) []eventqueue.RuleType {
	var types []eventqueue.RuleType
	for _, r := range db.rules {
		if r.Scope == scope {
			types = append(types, r.Type)
		}
	}
	return types
}

// rule is the strongest rule of a scope, as a fact.
func (db *database) rule(scope eventqueue.Scope) machine.Rule {
	types := db.rulesOf(scope)
	switch {
	case slices.Contains(types, eventqueue.BlockRule):
		return machine.BlockRule
	case len(types) > 0:
		return machine.PauseRule
	default:
		return machine.NoRule
	}
}
