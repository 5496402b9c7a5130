package pgstore_test

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/ratelimit"
	"eventsv2/eventqueue/worker"
)

var waitCases = []testCase{
	{"events of one key run one after the other", func(s *session) {
		ids := s.insert(2, func(e *eventqueue.NewEvent) { e.OrderingKey = "account" })
		for _, id := range ids {
			if facts := s.claim(id, 1).Facts; facts.Claimed || !facts.Waits {
				s.Errorf("without a turn the claim found %+v", facts)
			}
		}
		turns, err := s.store.Advance(s.Context(), nil, ids)
		if err != nil || len(turns) != 1 || turns[0].ID != ids[0] {
			s.Fatalf("the turn went to %+v, %v", turns, err)
		}
		found, claim := s.mustClaim(ids[0], 1)
		if !found.Grouped {
			s.Errorf("the claim found %+v", found)
		}
		written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion, Grouped: true})
		if len(written.Advanced) != 1 || written.Advanced[0].ID != ids[1] {
			s.Errorf("the end gave the turn to %+v", written.Advanced)
		}
		s.mustClaim(ids[1], 2)
	}},
	{"a group advances to what is due, whether or not its notification has arrived (I2)", func(s *session) {
		ids := s.insert(3, func(e *eventqueue.NewEvent) { e.OrderingKey, e.Delay = "account", time.Hour })
		if results, err := s.store.Requeue(s.Context(), ids); err != nil || len(results) != 3 { // they are due now
			s.Fatalf("Requeue: %+v, %v", results, err)
		}
		later := s.insert(1, func(e *eventqueue.NewEvent) { e.OrderingKey, e.Delay = "account", time.Hour })
		turns, err := s.store.Advance(s.Context(), nil, ids[2:])
		if err != nil || len(turns) != 1 || turns[0].ID != ids[0] {
			s.Fatalf("the turn went to %+v, %v, want event %s", turns, err, ids[0])
		}
		for i, id := range ids {
			_, claim := s.mustClaim(id, eventqueue.ClaimID(i+1))
			written := s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion, Grouped: true})
			var next []eventqueue.EventID
			for _, e := range written.Advanced {
				next = append(next, e.ID)
			}
			if want := ids[i+1 : min(i+2, len(ids))]; !slices.Equal(next, want) {
				s.Errorf("the end of event %s gave the turn to %v, want %v; event %s is not due", id, next, want, later[0])
			}
		}
	}},
	{"a concurrency limit is listed, and lets so many run", func(s *session) {
		limit := operate.ConcurrencyLimit{Canvas: canvas, Max: 1}
		if before, err := s.store.SetConcurrencyLimit(s.Context(), limit); err != nil || before {
			s.Fatalf("SetConcurrencyLimit = %t, %v", before, err)
		}
		limits, err := s.store.ConcurrencyLimits(s.Context(), canvas)
		if err != nil || !slices.Equal(limits, []operate.ConcurrencyLimit{limit}) {
			s.Errorf("the limits are %+v, %v", limits, err)
		}
		ids := s.insert(2)
		if facts := s.claim(ids[0], 1).Facts; facts.Claimed || !facts.Waits {
			s.Errorf("without a turn the claim found %+v", facts)
		}
		turns, err := s.store.Advance(s.Context(), nil, ids)
		if err != nil || len(turns) != 1 {
			s.Errorf("%d events have a turn, %v, want 1", len(turns), err)
		}
	}},
	{"a concurrency limit that is raised or removed lets more run", func(s *session) {
		limit := operate.ConcurrencyLimit{Canvas: canvas, Max: 1}
		if _, err := s.store.SetConcurrencyLimit(s.Context(), limit); err != nil {
			s.Fatalf("SetConcurrencyLimit: %v", err)
		}
		ids := s.insert(4)
		if _, err := s.store.Advance(s.Context(), nil, ids); err != nil {
			s.Fatalf("Advance: %v", err)
		}
		s.fills("of a limit that is as it was", limit, nil)
		for _, change := range []struct {
			max  int
			want []eventqueue.EventID
		}{{2, ids[1:2]}, {1, nil}, {0, ids[2:]}} {
			limit.Max = change.max
			if before, err := s.store.SetConcurrencyLimit(s.Context(), limit); err != nil || !before {
				s.Fatalf("SetConcurrencyLimit = %t, %v, want true", before, err)
			}
			s.fills(fmt.Sprintf("of a limit that is now %d", change.max), limit, change.want)
		}
		for i, id := range ids {
			s.mustClaim(id, eventqueue.ClaimID(i+1))
		}
	}},
	{"a rate limit grants what it has room for", func(s *session) {
		limit := operate.RateLimit{Scope: scope, PerMinute: 3, Mode: ratelimit.Exact}
		if before, err := s.store.SetRateLimit(s.Context(), limit); err != nil || before != nil {
			s.Fatalf("SetRateLimit = %+v, %v", before, err)
		}
		if found, _ := s.mustClaim(s.insert(1)[0], 1); !found.Limited || !found.Exact {
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
	{"a check of a rate limit counts nothing", func(s *session) {
		if answer, err := s.store.CheckRate(s.Context(), scope); err != nil || answer.Canvas != nil || answer.Handler != nil {
			s.Errorf("without a limit the check is answered with %+v, %v", answer, err)
		}
		if _, err := s.store.SetRateLimit(s.Context(), operate.RateLimit{Scope: scope, PerMinute: 2, Mode: ratelimit.Exact}); err != nil {
			s.Fatalf("SetRateLimit: %v", err)
		}
		s.hasRoom(2)
		s.hasRoom(2)
		// What has begun beyond the limit uses up the next minute, too, in case it comes now.
		if _, err := s.store.TakeRate(s.Context(), []worker.RateAsk{{Scope: scope, Ran: 8}}); err != nil {
			s.Fatalf("TakeRate: %v", err)
		}
		s.hasRoom(0)
	}},
	{"an event that a limit has put off is made due when the limit changes", func(s *session) {
		ids := s.insert(3)
		s.takes("of all", ids, ids)
		var claims []worker.Claim
		for i, id := range ids[:2] {
			_, claim := s.mustClaim(id, eventqueue.ClaimID(i+1))
			claims = append(claims, claim)
		}
		putOff := func(claim worker.Claim) {
			s.complete(worker.Completion{Claim: claim, Label: machine.OverLimit, Delay: time.Hour})
		}
		putOff(claims[0])
		if facts := s.claim(ids[0], 3).Facts; facts.Claimed || facts.Delay <= 59*time.Minute {
			s.Errorf("of an event that was put off the claim found %+v", facts)
		}
		var all []eventqueue.EventID
		after := operate.RatePlace{}
		for _, want := range []eventqueue.EventID{ids[1], 0} {
			due, next, err := s.store.TakeLimited(s.Context(), scope, after, 2)
			if err != nil || next.Event != want {
				s.Errorf("the page after event %s ends at %+v, %v, want %s", after.Event, next, err, want)
			}
			all = append(all, sortedIDs(due)...)
			after = next
		}
		if !slices.Equal(all, ids[:1]) {
			s.Errorf("%v were made due, want %v", all, ids[:1])
		}
		s.mustClaim(ids[0], 4)
		// The limit of this one was asked before it changed.
		putOff(claims[1])
		s.mustClaim(ids[1], 5)
	}},
	{"of two events with one unique key one is written", func(s *session) {
		unique := func(e *eventqueue.NewEvent) { e.UniqueKey = "order-17" }
		first := s.insert(1, unique)
		if second := s.insert(1, unique); !slices.Equal(first, second) {
			s.Errorf("the second event is %v, want the first, %v", second, first)
		}
		_, claim := s.mustClaim(first[0], 1)
		s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion})
		if third := s.insert(1, unique); slices.Equal(first, third) {
			s.Errorf("after the end of event %v its key still stands for it", first)
		}
	}},
	{"a unique key is deleted once its event has ended and its time has passed", func(s *session) {
		emit := func(name string, lasts time.Duration) eventqueue.EventID {
			return s.insert(1, func(e *eventqueue.NewEvent) { e.UniqueKey, e.UniqueFor = name, lasts })[0]
		}
		queued, ended, reserved := emit("a", 0), emit("b", 0), emit("c", time.Hour)
		for i, id := range []eventqueue.EventID{ended, reserved} {
			found, claim := s.mustClaim(id, eventqueue.ClaimID(i+1))
			s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion, Unique: found.Unique})
		}
		after := eventqueue.UniqueKey{}
		for _, want := range []struct {
			deleted int
			next    eventqueue.UniqueKey
		}{{1, eventqueue.UniqueKey{Canvas: canvas, Key: "b"}}, {0, eventqueue.UniqueKey{}}, {0, eventqueue.UniqueKey{Canvas: canvas, Key: "c"}}} {
			deleted, next, err := s.store.DeleteKeys(s.Context(), after, 2)
			if err != nil || deleted != want.deleted || next != want.next {
				s.Errorf("after %+v %d keys were deleted, up to %+v, %v; want %d, up to %+v", after, deleted, next, err, want.deleted, want.next)
			}
			after = next
		}
		if a, b, c := emit("a", 0), emit("b", 0), emit("c", 0); a != queued || b == ended || c != reserved {
			s.Errorf("the keys stand for %v, want %v, a new event, and %v", []eventqueue.EventID{a, b, c}, queued, reserved)
		}
	}},
}

// fills holds the events that may run because a limit was changed to those that should.
func (s *session) fills(what string, limit operate.ConcurrencyLimit, want []eventqueue.EventID) {
	s.Helper()
	advanced, next, err := s.store.FillGroups(s.Context(), limit, "")
	var ids []eventqueue.EventID
	for _, e := range advanced {
		ids = append(ids, e.ID)
	}
	if err != nil || next != "" || !slices.Equal(ids, want) {
		s.Errorf("%s the groups advanced to %v, up to %q, %v; want %v and no more", what, ids, next, err, want)
	}
}

// hasRoom holds the room under the handler's limit to what it should be.
func (s *session) hasRoom(want int64) {
	s.Helper()
	answer, err := s.store.CheckRate(s.Context(), scope)
	if err != nil || answer.Canvas != nil || answer.Handler == nil || answer.Handler.Room() != want {
		s.Errorf("the check is answered with %+v, %v, want room for %d", answer, err, want)
	}
}
