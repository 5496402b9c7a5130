package storetest

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
)

var pendingCases = []testCase{
	{"a pending notification is taken once (I11)", func(s *session) {
		ids := s.insert(2)
		far := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = 2 * eventqueue.MaxRequeue })
		s.takes("of all", slices.Concat(ids, far), ids)
		s.takes("of those that were taken", ids, nil)
		if err := s.store.MarkPending(s.Context(), ids[:1]); err != nil {
			s.Fatalf("Owe: %v", err)
		}
		s.takes("of one that could not be published", ids, ids[:1])
	}},
	{"the relay takes what is due, the earliest first", func(s *session) {
		late := s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Minute })
		early := s.insert(2)
		for _, want := range [][]eventqueue.EventID{early, late, nil} {
			taken, err := s.store.TakeDue(s.Context(), 2*time.Minute, 2)
			if err != nil || !slices.Equal(idsOf(taken), want) {
				s.Errorf("the relay took %v, %v, want %v", taken, err, want)
			}
		}
	}},
	{"the sweep walks all events, and takes none that is new", func(s *session) {
		ids := s.insert(3)
		s.takes("of all", ids, ids)
		swept, err := s.store.Sweep(s.Context(), 0, 2, time.Hour, lockTimeout)
		if err != nil || len(swept.Lost) != 0 || swept.Next != ids[1] || swept.Live != 2 {
			s.Errorf("the first page is %+v, %v", swept, err)
		}
		if swept, err = s.store.Sweep(s.Context(), swept.Next, 2, time.Hour, lockTimeout); err != nil || swept.Next != 0 || swept.Live != 1 {
			s.Errorf("the last page is %+v, %v", swept, err)
		}
	}},
	{"the sweep finds a run whose worker has died (I13)", func(s *session) {
		ids := s.insert(2)
		s.takes("of all", ids, ids)
		s.mustClaim(ids[1], lockTimeout, 1)
		swept, err := s.store.Sweep(s.Context(), 0, 10, time.Hour, expired)
		if err != nil || !slices.Equal(idsOf(swept.Lost), ids[1:]) {
			s.Errorf("lost are %+v, %v, want %v", swept.Lost, err, ids[1:])
		}
	}},
	{"a rule keeps its handler's events from the sweep", func(s *session) {
		id := s.insert(1)
		s.takes("of all", id, id)
		s.mustClaim(id[0], lockTimeout, 1)
		s.rule("pause", true)
		if swept, err := s.store.Sweep(s.Context(), 0, 10, time.Hour, expired); err != nil || len(swept.Lost) != 0 {
			s.Errorf("lost are %+v, %v", swept.Lost, err)
		}
	}},
}

// takes holds the notifications that are taken for publishing to those that are pending.
func (s *session) takes(what string, ids, want []eventqueue.EventID) {
	s.Helper()
	taken, err := s.store.TakePending(s.Context(), ids)
	if err != nil || !slices.Equal(idsOf(taken), want) {
		s.Errorf("%s %v were taken, %v, want %v", what, taken, err, want)
	}
}
