package worker_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
)

// shelf is a database for tests of thousands of events that are about nothing but whether a worker knows the handler
// and when an event is due: it has no rules, groups and limits, and no lock ever expires.
type shelf struct {
	// Methods that these tests do not call panic.
	eventqueue.EmitStore
	worker.Store

	mu     sync.Mutex
	events []eventqueue.Event // by their ids
}

func (s *shelf) Insert(_ context.Context, _ eventqueue.DB, events []eventqueue.NewEvent, _ eventqueue.NotifyMode) (inserted []eventqueue.Inserted, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		event := eventqueue.Event{ID: eventqueue.EventID(len(s.events) + 1), Canvas: e.Canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier,
			Value: e.Value, EnqueuedAt: time.Now(), DelayUntil: e.DelayUntil}
		if event.DelayUntil.Before(event.EnqueuedAt) {
			event.DelayUntil = event.EnqueuedAt
		}
		s.events = append(s.events, event)
		inserted = append(inserted, eventqueue.Inserted{ID: event.ID, MustNotify: true})
	}
	return inserted, nil
}

func (s *shelf) Claim(_ context.Context, ids []eventqueue.EventID, known eventqueue.HandlerSet, claim eventqueue.ClaimID) (found []worker.ClaimResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		e := s.events[id-1]
		if e.ID == 0 {
			found = append(found, worker.ClaimResult{Event: eventqueue.Event{ID: id}})
			continue
		}
		facts := machine.Facts{Present: true, Delay: time.Until(e.DelayUntil), HandlerKnown: slices.Contains(known.Everywhere, e.Handler())}
		facts.Claimed = facts.HandlerKnown && facts.Delay <= 0
		found = append(found, worker.ClaimResult{Event: e, Facts: facts, Attempt: 1, ClaimID: claim})
	}
	return found, nil
}

func (s *shelf) Complete(_ context.Context, _ eventqueue.DB, completions []worker.Completion, _ bool) (written worker.WriteResult, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range completions {
		e := &s.events[c.Event-1]
		if c.Label == machine.RetryAllowed {
			e.Retries, e.DelayUntil = e.Retries+1, time.Now().Add(c.Delay)
		} else {
			*e = eventqueue.Event{}
		}
		written.Done = append(written.Done, c.Event)
	}
	return written, nil
}

// left counts the events that have not ended.
func (s *shelf) left() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.ID != 0 {
			n++
		}
	}
	return n
}

func (*shelf) Renew(_ context.Context, claims []worker.Claim) (written worker.WriteResult, err error) {
	for _, c := range claims {
		written.Done = append(written.Done, c.Event)
	}
	return written, nil
}

func (*shelf) RunnablePriority(context.Context, string, eventqueue.Scope, int) ([]eventqueue.Event, eventqueue.Scope, error) {
	return nil, eventqueue.Scope{}, nil
}

func (*shelf) Runnable(context.Context, eventqueue.Scope, []eventqueue.CanvasID) ([]eventqueue.Event, eventqueue.Scope, error) {
	return nil, eventqueue.Scope{}, nil
}
