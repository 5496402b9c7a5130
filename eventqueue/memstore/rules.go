package memstore

import (
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
)

// AddRule implements control.RuleStore. A claim is one step, so it need not wait for any.
func (s *Store) AddRule(ctx context.Context, t control.RuleType, scope eventqueue.Scope) (added bool, err error) {
	err = s.atOnce(ctx, OpAddRule, func() {
		s.db.lastRule++ // the sequence moves on a conflict, too
		if slices.Contains(s.db.rulesOf(scope), t) {
			return
		}
		added = true
		s.db.rules = append(s.db.rules, RuleRow{s.db.lastRule, control.Rule{Type: t, Scope: scope, CreatedAt: s.db.now()}})
	})
	return added && err == nil, err
}

// LiftRule implements control.RuleStore.
func (s *Store) LiftRule(ctx context.Context, t control.RuleType, scope eventqueue.Scope) (control.Lifted, error) {
	var lifted control.Lifted
	err := s.atOnce(ctx, OpLiftRule, func() {
		before := len(s.db.rules)
		s.db.rules = slices.DeleteFunc(s.db.rules, func(r RuleRow) bool { return r.Type == t && r.Scope == scope })
		lifted = control.Lifted{
			Removed: len(s.db.rules) < before,
			Last:    len(s.db.rulesOf(scope)) == 0,
			At:      s.db.now(),
		}
	})
	if err != nil {
		return control.Lifted{}, err
	}
	return lifted, nil
}

// TakeWaiting implements control.RuleStore.
func (s *Store) TakeWaiting(ctx context.Context, scope eventqueue.Scope, since time.Time, after eventqueue.EventID, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpTakeWaiting, func() {
		horizon := s.db.now().Add(eventqueue.MaxRequeue)
		var page []*record
		page, next = s.db.page(after, limit, func(r *Row) bool { return r.scope() == scope })
		for _, r := range page {
			if r.writer == nil && r.Group != groupWaiting && !r.DelayUntil.After(horizon) &&
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
