package rig

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// Pages is a store without a database, and a notifier: it hands out each of its pages once, and records which
// notifications are pending and published. Beside the pages it is for one goroutine at a time.
type Pages struct {
	// Methods that are not called panic.
	eventqueue.EmitStore
	maintenance.RelayStore

	Mu        sync.Mutex // for pages
	Due, Lost [][]eventqueue.Notification
	Asked     int // for pages

	Pending   map[eventqueue.EventID]bool
	Published map[eventqueue.EventID]int
	Failing   bool   // Publish
	Sending   func() // at each Publish; nil: nothing
}

// NewPages makes pages of whole requests, with ids from 1 on.
func NewPages(due, lost int) *Pages {
	p := &Pages{Pending: map[eventqueue.EventID]bool{}, Published: map[eventqueue.EventID]int{}}
	next := eventqueue.EventID(1)
	pages := func(n int) (pages [][]eventqueue.Notification) {
		for range n {
			pages = append(pages, PageFrom(next, Canvas))
			next += eventqueue.MaxPublish
		}
		return pages
	}
	p.Due, p.Lost = pages(due), pages(lost)
	return p
}

// PageFrom is a whole request, with ids from first on.
func PageFrom(first eventqueue.EventID, canvas eventqueue.CanvasID) []eventqueue.Notification {
	page := make([]eventqueue.Notification, eventqueue.MaxPublish)
	for i := range page {
		page[i] = eventqueue.Notification{Event: first + eventqueue.EventID(i), Canvas: canvas}
	}
	return page
}

// Publish records what is published.
func (p *Pages) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	if p.Sending != nil {
		p.Sending()
	}
	if p.Failing {
		return errors.New("down")
	}
	for _, n := range notifications {
		p.Published[n.Event]++
	}
	return nil
}

// MarkPending records what is pending.
func (p *Pages) MarkPending(ctx context.Context, ids []eventqueue.EventID) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, id := range ids {
		p.Pending[id] = true
	}
	return nil
}

// LeavePending is MarkPending.
func (p *Pages) LeavePending(ctx context.Context, ids []eventqueue.EventID) error {
	return p.MarkPending(ctx, ids)
}

// TakePending finds nothing.
func (*Pages) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

// TakeDue takes the next page of Due.
func (p *Pages) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Asked++
	if len(p.Due) == 0 {
		return nil, nil
	}
	page := p.Due[0]
	p.Due = p.Due[1:]
	return page, nil
}

// TakeLost is After.
func (p *Pages) TakeLost(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return p.After(after)
}

// TakeRound finds nothing.
func (*Pages) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, nil
}

// Sweep is After.
func (p *Pages) Sweep(_ context.Context, after eventqueue.EventID, _ int, _ time.Duration) (s maintenance.Swept, err error) {
	s.Lost, s.Next, err = p.After(after)
	s.Read = max(1, len(s.Lost))
	return s, err
}

// After is the first page of Lost that is after an id.
func (p *Pages) After(id eventqueue.EventID) ([]eventqueue.Notification, eventqueue.EventID, error) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Asked++
	for i, page := range p.Lost {
		last := page[len(page)-1].Event
		switch {
		case last <= id:
		case i == len(p.Lost)-1:
			return page, 0, nil
		default:
			return page, last, nil
		}
	}
	return nil, 0, nil
}

// Listen hears nothing.
func (*Pages) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// PublishedOnce requires that the events 1 to n were published, each once.
func (p *Pages) PublishedOnce(t *testing.T, n int) {
	t.Helper()
	for id := eventqueue.EventID(1); id <= eventqueue.EventID(n); id++ {
		if p.Published[id] != 1 {
			t.Fatalf("event %s of %d was published %d times", id, n, p.Published[id])
		}
	}
}

// Relay makes a relay on the pages.
func (p *Pages) Relay(t *testing.T, config maintenance.RelayConfig) *maintenance.Relay {
	t.Helper()
	relay, err := maintenance.NewRelay(p, p, config)
	if err != nil {
		t.Fatal(err)
	}
	return relay
}
