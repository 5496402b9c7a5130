package memstore

import (
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// AddRule implements operate.RuleStore. A claim is one step, so it need not wait for any.
func (s *Store) AddRule(ctx context.Context, rule operate.Rule) (added bool, err error) {
	passed := false
	err = s.atOnce(ctx, OpAddRule, func() {
		if passed = rule.Ended(s.db.now()); passed {
			return
		}
		s.db.lastRule++ // the sequence moves on a conflict, too
		rule.CreatedAt, rule.Rate, rule.ReleasedTo, rule.ReleasedAt = s.db.now(), 0, 0, time.Time{}
		there := s.db.findRule(rule.Type, rule.RuleScope)
		switch {
		case there == nil:
			s.db.rules = append(s.db.rules, RuleRow{s.db.lastRule, rule})
		case there.Rate > 0:
			there.Rule = rule
		default:
			return
		}
		added = true
	})
	if err == nil && passed {
		err = operate.ErrUntilPassed
	}
	return added && err == nil, err
}

// findRule returns the rule of a type and a scope, or nil.
func (db *database) findRule(t operate.RuleType, scope operate.RuleScope) *RuleRow {
	i := slices.IndexFunc(db.rules, func(r RuleRow) bool { return r.Type == t && r.RuleScope == scope })
	if i < 0 {
		return nil
	}
	return &db.rules[i]
}

func (db *database) removeRule(id int32) {
	db.rules = slices.DeleteFunc(db.rules, func(r RuleRow) bool { return r.ID == id })
}

// noneHolds reports whether no rule holds back all of a scope.
func (db *database) noneHolds(scope operate.RuleScope) bool {
	return !slices.ContainsFunc(db.rules, func(r RuleRow) bool { return r.Rate == 0 && r.Covers(scope) })
}

// LiftRule implements operate.RuleStore.
func (s *Store) LiftRule(ctx context.Context, lift operate.Lift) (operate.Lifted, error) {
	var lifted operate.Lifted
	err := s.atOnce(ctx, OpLiftRule, func() {
		now := s.db.now()
		if rule := s.db.findRule(lift.Type, lift.RuleScope); rule != nil && (!lift.Expired || rule.Ended(now)) {
			lifted.Removed = true
			switch {
			case lift.Rate == 0:
				s.db.removeRule(rule.ID)
			case rule.Rate == 0:
				rule.Rate, rule.ReleasedAt, rule.Until = lift.Rate, now.Add(-time.Second), time.Time{}
			default:
				rule.Rate = lift.Rate
			}
		}
		lifted.Last, lifted.At = s.db.noneHolds(lift.RuleScope), now
	})
	if err != nil {
		return operate.Lifted{}, err
	}
	return lifted, nil
}

// Release implements operate.RuleStore.
func (s *Store) Release(ctx context.Context, t operate.RuleType, scope operate.RuleScope) (released operate.Released, err error) {
	err = s.atOnce(ctx, OpRelease, func() {
		rule, now := s.db.findRule(t, scope), s.db.now()
		released.At = now
		if rule == nil || rule.Rate == 0 {
			return
		}
		released.After, released.UpTo = rule.ReleasedTo, rule.ReleasedTo
		from := latest(rule.ReleasedAt, now.Add(-operate.MaxReleaseTime))
		if from.After(now.Add(operate.MaxReleaseTime)) {
			from = now.Add(-time.Second)
		}
		room := int(now.Sub(from).Microseconds() * int64(rule.Rate) / 1e6)
		if released.GoesOn = room <= 0; released.GoesOn {
			return
		}
		page := s.db.releasable(rule, room)
		if released.GoesOn = len(page) == room; released.GoesOn {
			released.UpTo = page[room-1].ID
			rule.ReleasedTo, rule.ReleasedAt = released.UpTo, from.Add(time.Duration(int64(room)*1e6/int64(rule.Rate))*time.Microsecond)
			return
		}
		s.db.removeRule(rule.ID)
		released.Removed, released.UpTo, released.Last = true, 0, s.db.noneHolds(scope)
	})
	if err != nil {
		return operate.Released{}, err
	}
	return released, nil
}

// releasable returns the first due events that only this rule holds back, at most limit of them.
func (db *database) releasable(rule *RuleRow, limit int) []*record {
	now := db.now()
	page, _ := db.page(rule.ReleasedTo, limit, func(r *Row) bool {
		return rule.Matches(r.Canvas, r.Handler()) && !r.DelayUntil.After(now) &&
			!slices.ContainsFunc(db.rules, func(other RuleRow) bool { return other.ID != rule.ID && other.holds(r) })
	})
	return page
}

// RulesToLift implements operate.RuleStore.
func (s *Store) RulesToLift(ctx context.Context) (rules []operate.Rule, err error) {
	err = s.atOnce(ctx, OpRulesToLift, func() {
		for _, r := range s.db.rules {
			if r.Ended(s.db.now()) || r.Rate > 0 {
				r.CreatedAt = time.Time{}
				rules = append(rules, r.Rule)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return rules, nil
}

// WaitingScopes implements operate.RuleStore. Its results are in the order of their bytes.
func (s *Store) WaitingScopes(ctx context.Context, scope operate.RuleScope) (scopes []eventqueue.Scope, err error) {
	err = s.atOnce(ctx, OpWaitingScopes, func() {
		anyModifier := scope
		anyModifier.Modifier = ""
		for _, r := range s.db.events {
			if anyModifier.Matches(r.Canvas, r.Handler()) {
				scopes = append(scopes, r.scope())
			}
		}
		slices.SortFunc(scopes, compareScopes)
		scopes = slices.Compact(scopes)
	})
	if err != nil {
		return nil, err
	}
	return scopes, nil
}

// TakeWaiting implements operate.RuleStore.
func (s *Store) TakeWaiting(ctx context.Context, of operate.Waiting, limit int) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpTakeWaiting, func() {
		horizon := s.db.now().Add(eventqueue.MaxRequeue)
		var page []*record
		page, next = s.db.page(of.After, limit, func(r *Row) bool { return r.scope() == of.Scope && (of.UpTo == 0 || r.ID <= of.UpTo) })
		for _, r := range page {
			if r.writer == nil && r.Group != groupWaiting && !r.DelayUntil.After(horizon) && (of.Modifier == "" || r.Modifier == of.Modifier) &&
				(r.NotifiedAt.IsZero() || r.NotifiedAt.Before(of.Since)) && len(s.db.rulesOf(&r.Row)) == 0 {
				taken = append(taken, s.db.notify(r))
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return taken, next, nil
}
