package storetest

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

var claimCases = []testCase{
	{"a claim brings the event as it was emitted (I8)", func(s *session) {
		id := s.insert(1)[0]
		found, _ := s.mustClaim(id, lockTimeout, 7)
		e := found.Event
		if e.Canvas != canvas || e.Handler() != key || string(e.Value) != `{"n": 1}` || e.Retries != 0 || found.Attempt != 1 || found.ClaimID != 7 {
			s.Errorf("the claim found %+v", found)
		}
	}},
	{"of two claims one holds (I4)", func(s *session) {
		id := s.insert(1)[0]
		s.mustClaim(id, lockTimeout, 1)
		second := s.claim(id, lockTimeout, 2).Facts
		if second.Claimed || second.Lock != machine.LockHeld || second.LockRemaining <= 0 || second.LockRemaining > lockTimeout {
			s.Errorf("the second claim found %+v", second)
		}
	}},
	{"what is not there is not answered for", func(s *session) {
		id := s.insert(1)[0]
		found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id, id + 1}, known, lockTimeout, 1)
		if err != nil || len(found) != 1 {
			s.Errorf("the claim found %+v, %v", found, err)
		}
	}},
	{"nothing is claimed early (I6)", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Hour })[0]
		facts := s.claim(id, lockTimeout, 1).Facts
		if facts.Claimed || facts.Delay <= 59*time.Minute || facts.Delay > time.Hour {
			s.Errorf("the claim found %+v", facts)
		}
	}},
	{"an event of a handler that the worker does not have is left", func(s *session) {
		id := s.insert(1, func(e *eventqueue.NewEvent) { e.Name = "unknown" })[0]
		if facts := s.claim(id, lockTimeout, 1).Facts; facts.Claimed || facts.HandlerKnown {
			s.Errorf("the claim found %+v", facts)
		}
	}},
	{"pause and block are independent (I7, I14)", func(s *session) {
		id := s.insert(1)[0]
		s.rule(machine.PauseRule, true)
		s.rule(machine.PauseRule, false)
		if facts := s.claim(id, lockTimeout, 1).Facts; facts.Claimed || facts.Rule != machine.PauseRule {
			s.Errorf("of a paused event the claim found %+v", facts)
		}
		s.rule(machine.BlockRule, true)
		if facts := s.claim(id, lockTimeout, 1).Facts; facts.Claimed || facts.Rule != machine.BlockRule {
			s.Errorf("of an event that is paused and blocked the claim found %+v", facts)
		}
		s.lift(machine.PauseRule, true, false)
		s.lift(machine.PauseRule, false, false)
		s.lift(machine.BlockRule, true, true)
		s.mustClaim(id, lockTimeout, 1)
	}},
	{"a busy worker is shown what it may claim", func(s *session) {
		ids := s.insert(3)
		s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Hour })
		s.mustClaim(ids[1], lockTimeout, 1)
		events, next, err := s.store.Runnable(s.Context(), eventqueue.Scope{}, nil, lockTimeout)
		if err != nil || next != (eventqueue.Scope{}) || len(events) != 2 || events[0].ID != ids[0] || events[1].ID != ids[2] {
			s.Errorf("runnable are %+v, the next page is %v, %v", events, next, err)
		}
	}},
}

func (s *session) rule(rule machine.Rule, added bool) {
	s.Helper()
	if got, err := s.store.AddRule(s.Context(), rule, scope); err != nil || got != added {
		s.Errorf("AddRule(%s) = %t, %v, want %t", rule, got, err, added)
	}
}

func (s *session) lift(rule machine.Rule, removed, last bool) {
	s.Helper()
	if got, err := s.store.LiftRule(s.Context(), rule, scope); err != nil || got.Removed != removed || got.Last != last {
		s.Errorf("LiftRule(%s) = %+v, %v, want removed %t, last %t", rule, got, err, removed, last)
	}
}
