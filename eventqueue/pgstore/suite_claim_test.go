package pgstore_test

import (
	"errors"
	"maps"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/locktimeout"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

var claimCases = []testCase{
	{"a claim brings the event as it was emitted (I8)", func(s *session) {
		id := s.insert(1)[0]
		found, _ := s.mustClaim(id, 7)
		e := found.Event
		if e.Canvas != canvas || e.Handler() != key || string(e.Value) != `{"n": 1}` || e.Retries != 0 || found.Attempt != 1 || found.ClaimID != 7 {
			s.Errorf("the claim found %+v", found)
		}
	}},
	{"a claim brings the attributes and the parent of an event", func(s *session) {
		attributes := map[string]string{"request-id": `"7" <&>\`, "source": "ü 😀", "empty": ""}
		ids := s.insert(2, func(e *eventqueue.NewEvent) { e.Attributes, e.ParentID = attributes, 17 })
		ids = append(ids, s.insert(1, func(e *eventqueue.NewEvent) { e.Attributes, e.UniqueKey = attributes, "key" })...)
		for _, id := range ids {
			found, _ := s.mustClaim(id, 1)
			if !maps.Equal(found.Event.Attributes, attributes) {
				s.Errorf("event %s has the attributes %q, want %q", id, found.Event.Attributes, attributes)
			}
		}
		s.expireLocks()
		if found := s.claim(ids[1], 2); found.Event.ParentID != 17 {
			s.Errorf("the parent is %s, want 17", found.Event.ParentID)
		}
	}},
	{"each event of a batch has its own attributes and its own parent", func(s *session) {
		n := 0
		ids := s.insert(3, func(e *eventqueue.NewEvent) {
			if n++; n == 1 {
				e.ParentID = 5
			} else if n == 3 {
				e.Attributes = map[string]string{"n": "3"}
			}
		})
		for i, want := range []eventqueue.Event{{ParentID: 5}, {}, {Attributes: map[string]string{"n": "3"}}} {
			found, _ := s.mustClaim(ids[i], 1)
			if found.Event.ParentID != want.ParentID || !maps.Equal(found.Event.Attributes, want.Attributes) {
				s.Errorf("event %d of the batch has the parent %s and the attributes %q", i, found.Event.ParentID, found.Event.Attributes)
			}
		}
	}},
	{"a retry has the attributes and the parent of the first run", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Attributes, e.ParentID = map[string]string{"user": "ada"}, 17 })[0]
		_, claim := s.mustClaim(id, 1)
		s.complete(worker.Completion{Claim: claim, Label: machine.Released})
		found, _ := s.mustClaim(id, 2)
		if found.Event.ParentID != 17 || found.Event.Attributes["user"] != "ada" {
			s.Errorf("the second claim found %+v", found.Event)
		}
	}},
	{"of two claims one holds (I4)", func(s *session) {
		id := s.insert(1)[0]
		s.mustClaim(id, 1)
		second := s.claim(id, 2).Facts
		if second.Claimed || second.Lock != machine.LockHeld || second.LockRemaining <= 0 || second.LockRemaining > locktimeout.Default {
			s.Errorf("the second claim found %+v", second)
		}
	}},
	{"what is not there is not answered for", func(s *session) {
		id := s.insert(1)[0]
		found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id, id + 1}, handlers, 1)
		if err != nil || len(found) != 1 {
			s.Errorf("the claim found %+v, %v", found, err)
		}
	}},
	{"nothing is claimed early (I6)", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Hour })[0]
		facts := s.claim(id, 1).Facts
		if facts.Claimed || facts.Delay <= 59*time.Minute || facts.Delay > time.Hour {
			s.Errorf("the claim found %+v", facts)
		}
	}},
	{"an event of a handler that the worker does not have is left", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Name = "unknown" })[0]
		if facts := s.claim(id, 1).Facts; facts.Claimed || facts.HandlerKnown {
			s.Errorf("the claim found %+v", facts)
		}
	}},
	{"pause and block are independent (I7, I14)", func(s *session) {
		id := s.insert(1)[0]
		s.rule(machine.PauseRule, true)
		s.rule(machine.PauseRule, false)
		if facts := s.claim(id, 1).Facts; facts.Claimed || facts.Rule != machine.PauseRule {
			s.Errorf("of a paused event the claim found %+v", facts)
		}
		s.rule(machine.BlockRule, true)
		if facts := s.claim(id, 1).Facts; facts.Claimed || facts.Rule != machine.BlockRule {
			s.Errorf("of an event that is paused and blocked the claim found %+v", facts)
		}
		s.lift(machine.PauseRule, true, false)
		s.lift(machine.PauseRule, false, false)
		s.lift(machine.BlockRule, true, true)
		s.mustClaim(id, 1)
	}},
	{"a rule has a reason, an actor and an end", func(s *session) {
		rule := operate.RuleOf(machine.PauseRule, scope)
		rule.Reason, rule.Actor = "orders come twice", "ann"
		now := s.now()
		rule.Until = now.Add(-time.Hour)
		if added, err := s.store.AddRule(s.Context(), rule); added || !errors.Is(err, operate.ErrUntilPassed) {
			s.Errorf("a rule that has ended was added: %t, %v", added, err)
		}
		rule.Until = now.Add(time.Hour)
		if added, err := s.store.AddRule(s.Context(), rule); err != nil || !added {
			s.Errorf("AddRule = %t, %v", added, err)
		}
		if expired, err := s.store.RulesToLift(s.Context(), time.Minute); err != nil || len(expired) != 0 {
			s.Errorf("expired before their end are %+v, %v", expired, err)
		}
		lifted, err := s.store.LiftRule(s.Context(), operate.Lift{Type: rule.Type, RuleScope: operate.RuleScope{Scope: scope}, Expired: true})
		if err != nil || lifted.Removed || lifted.Last {
			s.Errorf("before its end the rule was lifted as expired: %+v, %v", lifted, err)
		}
		s.lift(machine.PauseRule, true, true)
	}},
	{"a rule without an end never expires", func(s *session) {
		s.rule(machine.BlockRule, true)
		if expired, err := s.store.RulesToLift(s.Context(), time.Minute); err != nil || len(expired) != 0 {
			s.Errorf("expired are %+v, %v", expired, err)
		}
		if lifted, err := s.store.LiftRule(s.Context(), operate.Lift{Type: machine.BlockRule, RuleScope: operate.RuleScope{Scope: scope}, Expired: true}); err != nil || lifted.Removed {
			s.Errorf("it was lifted as expired: %+v, %v", lifted, err)
		}
	}},
	{"a busy worker is shown what it may claim", func(s *session) {
		ids := s.insert(3)
		s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Hour })
		s.mustClaim(ids[1], 1)
		events, next, err := s.store.Runnable(s.Context(), eventqueue.Scope{}, nil)
		if err != nil || next != (eventqueue.Scope{}) || len(events) != 2 || events[0].ID != ids[0] || events[1].ID != ids[2] {
			s.Errorf("runnable are %+v, the next page is %v, %v", events, next, err)
		}
	}},
}

func (s *session) rule(rule machine.Rule, added bool) {
	s.Helper()
	if got, err := s.store.AddRule(s.Context(), operate.RuleOf(rule, scope)); err != nil || got != added {
		s.Errorf("AddRule(%s) = %t, %v, want %t", rule, got, err, added)
	}
}

func (s *session) lift(rule machine.Rule, removed, last bool) {
	s.Helper()
	if got, err := s.store.LiftRule(s.Context(), operate.LiftOf(rule, scope)); err != nil || got.Removed != removed || got.Last != last {
		s.Errorf("LiftRule(%s) = %+v, %v, want removed %t, last %t", rule, got, err, removed, last)
	}
}

// now is the time of the database's clock.
func (s *session) now() time.Time {
	s.Helper()
	lifted, err := s.store.LiftRule(s.Context(), operate.Lift{Type: machine.PauseRule, RuleScope: operate.RuleScope{Scope: scope}, Expired: true})
	if err != nil {
		s.Fatalf("LiftRule: %v", err)
	}
	return lifted.At
}

var ruleCases = []testCase{
	{"a rule of a modifier holds back no other (I7)", func(s *session) {
		bulk := s.insert(1, func(e *eventqueue.NewEvent) { e.Modifier = "bulk" })[0]
		other := s.insert(1)[0]
		s.takes("of both", []eventqueue.EventID{bulk, other}, []eventqueue.EventID{bulk, other})
		rule := operate.RuleOf(machine.PauseRule, scope)
		rule.Modifier = "bulk"
		s.add(rule, true)
		s.add(rule, false)
		s.held(bulk, machine.PauseRule)
		s.roundFinds("while one modifier is paused", nil)
		events, _, err := s.store.Runnable(s.Context(), eventqueue.Scope{}, nil)
		if err != nil || len(events) != 1 || events[0].ID != other {
			s.Errorf("runnable are %+v, %v", events, err)
		}
		s.mustClaim(other, 1)
		s.liftRule(operate.Lift{Type: machine.PauseRule, RuleScope: operate.RuleScope{Scope: scope}}, false, true)
		s.held(bulk, machine.PauseRule)
		s.liftRule(operate.Lift{Type: rule.Type, RuleScope: rule.RuleScope}, true, true)
		s.held(bulk, machine.NoRule)
	}},
	{"a rule of a prefix holds back all names that begin with it, and no other (I7, I16)", func(s *session) {
		named := func(name string) eventqueue.EventID {
			return s.insert(1, func(e *eventqueue.NewEvent) { e.Name = name })[0]
		}
		exact, longer, shorter, wildcard := named("greet"), named("greeting"), named("gree"), named("gr%")
		elsewhere := s.insert(1, func(e *eventqueue.NewEvent) { e.Canvas[0]++ })[0]
		module := s.insert(1, func(e *eventqueue.NewEvent) { e.Module = "OTHER" })[0]
		rule := operate.RuleOf(machine.BlockRule, scope)
		rule.Prefix = true
		s.add(rule, true)
		for _, id := range []eventqueue.EventID{exact, longer} {
			s.held(id, machine.BlockRule)
		}
		for _, id := range []eventqueue.EventID{shorter, wildcard, elsewhere, module} {
			s.held(id, machine.NoRule)
		}
		pattern := rule
		pattern.Name, pattern.Type = "gr%", machine.PauseRule // no character of a prefix stands for others
		s.add(pattern, true)
		s.held(wildcard, machine.PauseRule)
		s.held(shorter, machine.NoRule)
	}},
	{"a rule of the whole queue holds back every event, and is lifted by itself (I7, I14, I16)", func(s *session) {
		other := func(e *eventqueue.NewEvent) { e.Canvas[0]++; e.Module, e.Modifier = "OTHER", "bulk" }
		id, elsewhere, since := s.insert(1)[0], s.insert(1, other)[0], s.now()
		whole := operate.Rule{Type: machine.BlockRule, RuleScope: operate.WholeQueue}
		s.add(whole, true)
		s.add(whole, false)
		later := s.insert(1, other)[0]
		s.rule(machine.PauseRule, true)
		for _, id := range []eventqueue.EventID{id, elsewhere, later} {
			s.held(id, machine.BlockRule)
		}
		s.roundFinds("while the queue is held", nil)
		if events, _, err := s.store.Runnable(s.Context(), eventqueue.Scope{}, nil); err != nil || len(events) != 0 {
			s.Errorf("runnable are %+v, %v", events, err)
		}
		s.waiting("while the queue is held", operate.Waiting{Scope: scope, Since: since}, nil)
		s.liftRule(operate.LiftOf(machine.PauseRule, scope), true, false)
		scopes, err := s.store.WaitingScopes(s.Context(), operate.WholeQueue)
		if err != nil || len(scopes) != 2 {
			s.Errorf("found are %v, %v", scopes, err)
		}
		s.rule(machine.PauseRule, true)
		s.liftRule(operate.Lift{Type: whole.Type, RuleScope: whole.RuleScope}, true, true)
		s.held(id, machine.PauseRule)
		s.held(elsewhere, machine.NoRule)
		s.liftRule(operate.LiftOf(machine.PauseRule, scope), true, true)
		s.mustClaim(id, 1)
	}},
	{"of rules that overlap each is lifted by itself (I7, I14)", func(s *session) {
		ids, since := s.insert(2), s.now()
		id := ids[1]
		whole, part, prefix := operate.RuleOf(machine.PauseRule, scope), operate.RuleOf(machine.PauseRule, scope), operate.RuleOf(machine.BlockRule, scope)
		part.Modifier, prefix.Prefix, prefix.Name = key.Modifier, true, "gr"
		for _, rule := range []operate.Rule{whole, part, prefix} {
			s.add(rule, true)
		}
		s.held(id, machine.BlockRule)
		lift := func(rule operate.Rule, last bool) {
			s.Helper()
			s.liftRule(operate.Lift{Type: rule.Type, RuleScope: rule.RuleScope}, true, last)
		}
		lift(part, false)
		s.held(id, machine.BlockRule)
		lift(prefix, true) // no other one is of all names with that prefix
		s.held(id, machine.PauseRule)
		s.waiting("under the pause", operate.Waiting{Scope: scope, Since: since}, nil)
		lift(whole, true)
		s.waiting("of another modifier", operate.Waiting{Scope: scope, Since: since, Modifier: "bulk"}, nil)
		s.waiting("up to the first", operate.Waiting{Scope: scope, Since: since, UpTo: ids[0]}, ids[:1])
		s.waiting("of all", operate.Waiting{Scope: scope, Since: since, Modifier: key.Modifier}, ids[1:])
		s.mustClaim(id, 1)
	}},
	{"handlers with waiting events are found by their prefix", func(s *session) {
		for _, name := range []string{"greet", "greeting", "gree", "greet", "other"} {
			s.insert(1, func(e *eventqueue.NewEvent) { e.Name = name })
		}
		found, err := s.store.WaitingScopes(s.Context(), operate.RuleScope{Scope: scope, Prefix: true})
		longer := scope
		longer.Name = "greeting"
		if err != nil || len(found) != 2 || found[0] != scope || found[1] != longer {
			s.Errorf("found are %v, %v", found, err)
		}
	}},
	// In two seconds, which is the most that is made up for, two events are let run.
	{"a rule that is lifted at a rate lets the oldest run first (I7)", func(s *session) {
		ids := s.insert(5)
		s.rule(machine.PauseRule, true)
		lift := operate.LiftOf(machine.PauseRule, scope)
		lift.Rate = 1
		s.liftRule(lift, true, true)
		s.held(ids[0], machine.PauseRule)
		released := s.release(machine.PauseRule)
		if !released.GoesOn || released.Removed || released.UpTo < ids[0] || released.UpTo > ids[1] || released.After >= ids[0] {
			s.Fatalf("released are %+v of %v", released, ids)
		}
		later := s.insert(1)[0]
		for _, id := range append(ids, later) {
			want := machine.PauseRule
			if id <= released.UpTo {
				want = machine.NoRule
			}
			s.held(id, want)
		}
		rules, err := s.store.RulesToLift(s.Context(), time.Minute)
		if err != nil || len(rules) != 1 || rules[0].Rate != 1 || rules[0].ReleasedTo != released.UpTo {
			s.Errorf("to be lifted are %+v, %v", rules, err)
		}
		s.rule(machine.PauseRule, true) // as a whole it is a new one
		s.held(ids[0], machine.PauseRule)
		s.rule(machine.PauseRule, false)
		if released := s.release(machine.PauseRule); released.GoesOn || released.Removed {
			s.Errorf("a rule that is not being lifted is: %+v", released)
		}
		s.lift(machine.PauseRule, true, true)
	}},
	{"a rule that is lifted at a rate goes when nothing waits any more that is due and that it alone holds back", func(s *session) {
		ids := s.insert(2)
		far := s.insert(20, func(e *eventqueue.NewEvent) { e.Delay = eventqueue.MaxRequeue })[0]
		bulk := s.insert(20, func(e *eventqueue.NewEvent) { e.Modifier = "bulk" })
		s.rule(machine.PauseRule, true)
		other := operate.RuleOf(machine.BlockRule, scope)
		other.Modifier = "bulk"
		s.add(other, true)
		lift := operate.LiftOf(machine.PauseRule, scope)
		lift.Rate = 4
		s.liftRule(lift, true, true)
		released := s.release(machine.PauseRule)
		if !released.Removed || released.GoesOn || !released.Last || released.UpTo != 0 {
			s.Errorf("released are %+v", released)
		}
		s.held(ids[0], machine.NoRule)
		s.held(far, machine.NoRule)
		s.held(bulk[0], machine.BlockRule)
		s.lift(machine.PauseRule, false, true)
	}},
}

func (s *session) add(rule operate.Rule, added bool) {
	s.Helper()
	if got, err := s.store.AddRule(s.Context(), rule); err != nil || got != added {
		s.Errorf("AddRule(%s of %s) = %t, %v, want %t", rule.Type, rule.RuleScope, got, err, added)
	}
}

func (s *session) liftRule(lift operate.Lift, removed, last bool) {
	s.Helper()
	if got, err := s.store.LiftRule(s.Context(), lift); err != nil || got.Removed != removed || got.Last != last {
		s.Errorf("LiftRule(%s of %s) = %+v, %v, want removed %t, last %t", lift.Type, lift.RuleScope, got, err, removed, last)
	}
}

func (s *session) release(rule machine.Rule) operate.Released {
	s.Helper()
	released, err := s.store.Release(s.Context(), rule, operate.RuleScope{Scope: scope})
	if err != nil {
		s.Fatalf("Release: %v", err)
	}
	return released
}

// held requires that a rule holds an event back, or none. Nobody knows the handler for which it asks, so nothing is claimed.
func (s *session) held(id eventqueue.EventID, want machine.Rule) {
	s.Helper()
	found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id}, eventqueue.HandlerSet{}, 1)
	if err != nil || len(found) != 1 || found[0].Facts.Claimed || found[0].Facts.Rule != want {
		s.Errorf("event %s is held back by %+v, %v, want %q", id, found, err, want)
	}
	if want == machine.NoRule {
		return
	}
	everybody := eventqueue.HandlerSet{Everywhere: []eventqueue.HandlerKey{found[0].Event.Handler()}}
	if found, err = s.store.Claim(s.Context(), []eventqueue.EventID{id}, everybody, 1); err != nil || found[0].Facts.Claimed {
		s.Errorf("event %s is held back and was claimed: %+v, %v", id, found, err)
	}
}

func (s *session) waiting(which string, of operate.Waiting, want []eventqueue.EventID) {
	s.Helper()
	taken, next, err := s.store.TakeWaiting(s.Context(), of, 100)
	if err != nil || next != 0 || len(taken) != len(want) || len(want) > 0 && taken[0].Event != want[0] {
		s.Errorf("%s %v were taken, and then %s, %v; want %v", which, taken, next, err, want)
	}
}
