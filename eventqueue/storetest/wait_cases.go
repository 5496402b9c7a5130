package storetest

import (
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
)

var waitCases = []testCase{
	{"events of one key run one after the other", func(s *session) {
		ids := s.insert(2, func(e *eventqueue.NewEvent) { e.OrderingKey = "account" })
		for _, id := range ids {
			if facts := s.claim(id, lockTimeout, 1).Facts; facts.Claimed || !facts.Waits {
				s.Errorf("without a turn the claim found %+v", facts)
			}
		}
		turns, err := s.store.Advance(s.Context(), nil, ids, lockTimeout)
		if err != nil || len(turns) != 1 || turns[0].ID != ids[0] {
			s.Fatalf("the turn went to %+v, %v", turns, err)
		}
		found, claim := s.mustClaim(ids[0], lockTimeout, 1)
		if !found.Grouped {
			s.Errorf("the claim found %+v", found)
		}
		written := s.finish(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion, Grouped: true})
		if len(written.Advanced) != 1 || written.Advanced[0].ID != ids[1] {
			s.Errorf("the end gave the turn to %+v", written.Advanced)
		}
		s.mustClaim(ids[1], lockTimeout, 2)
	}},
	{"a running limit is listed, and lets so many run", func(s *session) {
		limit := control.RunningLimit{Canvas: canvas, Max: 1}
		if before, err := s.store.SetRunningLimit(s.Context(), limit); err != nil || before {
			s.Fatalf("SetRunningLimit = %t, %v", before, err)
		}
		limits, err := s.store.RunningLimits(s.Context(), canvas)
		if err != nil || !slices.Equal(limits, []control.RunningLimit{limit}) {
			s.Errorf("the limits are %+v, %v", limits, err)
		}
		ids := s.insert(2)
		if facts := s.claim(ids[0], lockTimeout, 1).Facts; facts.Claimed || !facts.Waits {
			s.Errorf("without a turn the claim found %+v", facts)
		}
		turns, err := s.store.Advance(s.Context(), nil, ids, lockTimeout)
		if err != nil || len(turns) != 1 {
			s.Errorf("%d events have a turn, %v, want 1", len(turns), err)
		}
	}},
	{"a rate limit grants what it has room for", func(s *session) {
		limit := control.RateLimit{Scope: scope, PerMinute: 3, Mode: ratelimit.Exact}
		if before, err := s.store.SetRateLimit(s.Context(), limit); err != nil || before != nil {
			s.Fatalf("SetRateLimit = %+v, %v", before, err)
		}
		if found, _ := s.mustClaim(s.insert(1)[0], lockTimeout, 1); !found.Limited || !found.Exact {
			s.Errorf("the claim found %+v", found)
		}
		answers, err := s.store.TakeRate(s.Context(), []worker.RateAsk{{Scope: scope, Want: 2}})
		if err != nil || len(answers) != 1 || answers[0].Granted != 2 || answers[0].Busy {
			s.Errorf("of 3 in a minute 2 were asked for: %+v, %v", answers, err)
		}
		if removed, err := s.store.RemoveRateLimit(s.Context(), scope); err != nil || !removed {
			s.Errorf("RemoveRateLimit = %t, %v", removed, err)
		}
	}},
	{"of two events with one unique key one is written", func(s *session) {
		unique := func(e *eventqueue.NewEvent) { e.UniqueKey = "order-17" }
		first := s.insert(1, unique)
		if second := s.insert(1, unique); !slices.Equal(first, second) {
			s.Errorf("the second event is %v, want the first, %v", second, first)
		}
		_, claim := s.mustClaim(first[0], lockTimeout, 1)
		s.finish(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion})
		if third := s.insert(1, unique); slices.Equal(first, third) {
			s.Errorf("after the end of event %v its key still stands for it", first)
		}
	}},
}
