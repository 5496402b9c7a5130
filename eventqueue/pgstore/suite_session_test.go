package pgstore_test

import (
	"slices"
	"testing"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

type testCase struct {
	name string
	run  func(s *session)
}

// session is one running case of the suite. What the store promises through its methods alone is tested here, and
// thereby in each schema; a test that needs SQL of its own, the clock, locks or plans of Postgres uses a rig.
type session struct {
	*testing.T
	store suiteStore
}

// insert adds events, each with the changes.
func (s *session) insert(n int, changes ...func(*eventqueue.NewEvent)) (ids []eventqueue.EventID) {
	s.Helper()
	events := make([]eventqueue.NewEvent, n)
	for i := range events {
		events[i] = eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: []byte(`{"n": 1}`)}
		for _, change := range changes {
			change(&events[i])
		}
	}
	inserted, err := s.store.Insert(s.Context(), nil, events, eventqueue.NotifyModeLater)
	if err != nil {
		s.Fatalf("Insert: %v", err)
	}
	for _, row := range inserted {
		ids = append(ids, row.ID)
	}
	return ids
}

// claim claims an event under a number, and requires that the store has the event.
func (s *session) claim(id eventqueue.EventID, number eventqueue.ClaimID) worker.ClaimResult {
	s.Helper()
	found, err := s.store.Claim(s.Context(), []eventqueue.EventID{id}, handlers, number)
	if err != nil || len(found) != 1 || found[0].Event.ID != id || !found[0].Facts.Present {
		s.Fatalf("Claim of event %s: %+v, %v", id, found, err)
	}
	return found[0]
}

// mustClaim claims an event that may run.
func (s *session) mustClaim(id eventqueue.EventID, number eventqueue.ClaimID) (worker.ClaimResult, worker.Claim) {
	s.Helper()
	found := s.claim(id, number)
	if !found.Facts.Claimed {
		s.Fatalf("event %s was not claimed: %+v", id, found.Facts)
	}
	return found, worker.Claim{Event: id, Attempt: found.Attempt, ID: found.ClaimID}
}

// complete writes one completion.
func (s *session) complete(end worker.Completion) worker.WriteResult {
	s.Helper()
	written, err := s.store.Complete(s.Context(), nil, []worker.Completion{end}, false)
	if err != nil {
		s.Fatalf("Complete: %v", err)
	}
	return written
}

func sortedIDs(notifications []eventqueue.Notification) (ids []eventqueue.EventID) {
	for _, n := range notifications {
		ids = append(ids, n.Event)
	}
	slices.Sort(ids)
	return ids
}
