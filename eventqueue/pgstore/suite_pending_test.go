package pgstore_test

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/worker"
)

var pendingCases = []testCase{
	{"a pending notification is taken once (I11)", func(s *session) {
		ids := s.insert(2)
		far := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = 2 * eventqueue.MaxRequeue })
		s.takes("of all", slices.Concat(ids, far), ids)
		s.takes("of those that were taken", ids, nil)
		if err := s.store.MarkPending(s.Context(), ids[:1]); err != nil {
			s.Fatalf("MarkPending: %v", err)
		}
		s.takes("of one that could not be published", ids, ids[:1])
	}},
	{"what a relay leaves pending is taken once more", func(s *session) {
		ids := s.insert(2)
		s.takes("of all", ids, ids)
		if err := s.store.LeavePending(s.Context(), ids[:1]); err != nil {
			s.Fatalf("LeavePending: %v", err)
		}
		s.takes("of one that was left pending", ids, ids[:1])
	}},
	{"what an emit without an answer has inserted is found until it is claimed (I19)", func(s *session) {
		event := func(change func(*eventqueue.NewEvent)) eventqueue.NewEvent {
			e := eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: []byte(`1`)}
			change(&e)
			return e
		}
		ordered := event(func(e *eventqueue.NewEvent) { e.OrderingKey = "account" })
		inserted, err := s.store.Insert(s.Context(), nil, []eventqueue.NewEvent{
			event(func(*eventqueue.NewEvent) {}),
			event(func(e *eventqueue.NewEvent) { e.Name = "another" }),
			event(func(e *eventqueue.NewEvent) { e.Canvas[1] = 7 }),
			event(func(e *eventqueue.NewEvent) { e.Delay = time.Minute }),
			event(func(e *eventqueue.NewEvent) { e.Delay = 2 * eventqueue.MaxRequeue }), // the relay's
			ordered, ordered,
			event(func(e *eventqueue.NewEvent) { e.UniqueKey = "once" }),
		}, eventqueue.NotifyModeSelf)
		if err != nil {
			s.Fatalf("Insert: %v", err)
		}
		s.insert(1) // which is pending
		asked := eventqueue.Unanswered{Scope: scope, Events: len(inserted), Oldest: time.Hour}
		finds := func(what string, asked eventqueue.Unanswered, want ...int) {
			s.Helper()
			found, err := s.store.Unclaimed(s.Context(), []eventqueue.Unanswered{asked})
			var ids []eventqueue.EventID
			for _, i := range want {
				ids = append(ids, inserted[i].ID)
			}
			if err != nil || !slices.Equal(sortedIDs(found), ids) {
				s.Errorf("%s: found %v, %v, want %v", what, found, err, ids)
			}
			if len(found) > 0 && found[0].Canvas != asked.Canvas {
				s.Errorf("%s: found for canvas %s", what, found[0].Canvas)
			}
		}
		finds("all", asked, 0, 3, 5, 7)
		finds("once more, since nothing was written", asked, 0, 3, 5, 7)
		other := asked
		other.Name = "another"
		finds("of another handler", other, 1)
		other = asked
		other.Newest = 30 * time.Minute
		finds("older ones", other)
		s.mustClaim(inserted[0].ID, 1)
		if err := s.store.MarkPending(s.Context(), []eventqueue.EventID{inserted[7].ID}); err != nil {
			s.Fatalf("MarkPending: %v", err)
		}
		finds("when one is claimed, and one pending", asked, 3, 5)
	}},
	{"the relay takes what is due, the earliest first", func(s *session) {
		late := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Minute })
		early := s.insert(2)
		for _, want := range [][]eventqueue.EventID{early, late, nil} {
			taken, err := s.store.TakeDue(s.Context(), 2*time.Minute, 2, nil)
			if err != nil || !slices.Equal(sortedIDs(taken), want) {
				s.Errorf("the relay took %v, %v, want %v", taken, err, want)
			}
		}
	}},
	{"the sweep walks all events, and takes none that is new", func(s *session) {
		ids := s.insert(3)
		s.takes("of all", ids, ids)
		swept, err := s.store.Sweep(s.Context(), 0, 2, time.Hour)
		if err != nil || len(swept.Lost) != 0 || swept.Next != ids[1] || swept.Live != 2 {
			s.Errorf("the first page is %+v, %v", swept, err)
		}
		if swept, err = s.store.Sweep(s.Context(), swept.Next, 2, time.Hour); err != nil || swept.Next != 0 || swept.Live != 1 {
			s.Errorf("the last page is %+v, %v", swept, err)
		}
	}},
	{"the sweep finds a run whose worker has died (I13)", func(s *session) {
		ids := s.insert(2)
		s.takes("of all", ids, ids)
		s.mustClaim(ids[1], 1)
		s.expireLocks()
		swept, err := s.store.Sweep(s.Context(), 0, 10, time.Hour)
		if err != nil || !slices.Equal(sortedIDs(swept.Lost), ids[1:]) {
			s.Errorf("lost are %+v, %v, want %v", swept.Lost, err, ids[1:])
		}
	}},
	{"a rule keeps its handler's events from the sweep", func(s *session) {
		id := s.insert(1)
		s.takes("of all", id, id)
		s.mustClaim(id[0], 1)
		s.rule("pause", true)
		s.expireLocks()
		if swept, err := s.store.Sweep(s.Context(), 0, 10, time.Hour); err != nil || len(swept.Lost) != 0 {
			s.Errorf("lost are %+v, %v", swept.Lost, err)
		}
		s.roundFinds("while the handler is paused", nil)
	}},
	{"a round finds a run whose worker has died, once (I13)", func(s *session) {
		ids := s.insert(3)
		s.takes("of all", ids, ids)
		s.mustClaim(ids[1], 1)
		s.roundFinds("while the lock is valid", nil)
		s.expireLocks()
		s.roundFinds("when it has expired", ids[1:2])
		s.roundFinds("after it was notified", nil)
	}},
	{"a round finds a run that was renewed", func(s *session) {
		ids := s.insert(2)
		s.takes("of all", ids, ids)
		_, claim := s.mustClaim(ids[0], 1)
		if written, err := s.store.Renew(s.Context(), []worker.Claim{claim}); err != nil || len(written.Done) != 1 {
			s.Fatalf("the renewal was answered with %+v, %v", written, err)
		}
		s.expireLocks()
		lost, next, err := s.store.TakeRound(s.Context(), maintenance.RoundPlace{Stage: maintenance.RoundOfRuns}, time.Hour)
		if err != nil || next != (maintenance.RoundPlace{}) || !slices.Equal(sortedIDs(lost), ids[:1]) {
			s.Errorf("the runs that are lost are %+v, %v, and the round goes on at %+v; want %v and its end", lost, err, next, ids[:1])
		}
	}},
	{"a round finds an ordering group that has not advanced", func(s *session) {
		ids := s.insert(2, func(e *eventqueue.NewEvent) { e.OrderingKey = "account" })
		if _, err := s.store.Advance(s.Context(), nil, ids); err != nil {
			s.Fatalf("Advance: %v", err)
		}
		_, claim := s.mustClaim(ids[0], 1)
		s.complete(worker.Completion{Claim: claim, Label: machine.ExecutesToCompletion}) // as in a transaction of the handler's
		s.roundFinds("after the first has ended", ids[1:])
		s.mustClaim(ids[1], 2)
	}},
	{"after a rule is lifted its events are notified once, page by page", func(s *session) {
		ids := s.insert(3)
		other := s.insert(1, func(e *eventqueue.NewEvent) { e.Name = "other" })
		far := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = 2 * eventqueue.MaxRequeue })
		s.takes("of all", slices.Concat(ids, other, far), slices.Concat(ids, other))
		s.rule(machine.PauseRule, true)
		lifted, err := s.store.LiftRule(s.Context(), operate.LiftOf(machine.PauseRule, scope))
		if err != nil {
			s.Fatalf("LiftRule: %v", err)
		}
		after := eventqueue.EventID(0)
		for _, page := range []struct {
			want []eventqueue.EventID
			next eventqueue.EventID
		}{{ids[:2], ids[1]}, {ids[2:], far[0]}, {nil, 0}, {nil, ids[1]}} { // and from the beginning again
			taken, next, err := s.store.TakeWaiting(s.Context(), operate.Waiting{Scope: scope, Since: lifted.At, After: after}, 2)
			if err != nil || next != page.next || !slices.Equal(sortedIDs(taken), page.want) {
				s.Errorf("after event %s %v were taken, up to %s, %v; want %v, up to %s", after, taken, next, err, page.want, page.next)
			}
			after = page.next
		}
	}},
}

// roundFinds holds what a whole round finds lost to the events that are. Notifications that
// are an hour old are old enough to be lost by their age.
func (s *session) roundFinds(when string, want []eventqueue.EventID) {
	s.Helper()
	var found []eventqueue.EventID
	for after := (maintenance.RoundPlace{}); ; {
		lost, next, err := s.store.TakeRound(s.Context(), after, time.Hour)
		if err != nil {
			s.Fatalf("TakeRound: %v", err)
		}
		found = append(found, sortedIDs(lost)...)
		if next == (maintenance.RoundPlace{}) {
			break
		}
		after = next
	}
	if !slices.Equal(found, want) {
		s.Errorf("%s the round found %v lost, want %v", when, found, want)
	}
}

// takes checks that exactly the wanted notifications, the pending ones, are taken for
// publishing.
func (s *session) takes(what string, ids, want []eventqueue.EventID) {
	s.Helper()
	taken, err := s.store.TakePending(s.Context(), ids)
	if err != nil || !slices.Equal(sortedIDs(taken), want) {
		s.Errorf("%s %v were taken, %v, want %v", what, taken, err, want)
	}
}
