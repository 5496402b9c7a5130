package sim

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// Each process has a clock that is wrong by up to maxSkew. A bubble has one clock
// for all, so the others are where they can be told apart: every moment that a
// process hands to the database is what its own clock says, and every moment that
// it gets is as far from its clock's now as it would be with a wrong one.
const maxSkew = 90 * time.Second

// fromClock is what a moment that a process names by its clock is in truth. The
// zero time stands for none.
func (p *process) fromClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(p.skew)
}

// toClock is what the process takes a moment for.
func (p *process) toClock(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-p.skew)
}

func (p *process) fromClockEach(events []eventqueue.NewEvent) []eventqueue.NewEvent {
	events = slices.Clone(events)
	for i := range events {
		events[i].DelayUntil = p.fromClock(events[i].DelayUntil)
	}
	return events
}

func (p *process) toClockEach(found []worker.ClaimResult) {
	for i := range found {
		e := &found[i].Event
		e.DelayUntil, e.EnqueuedAt = p.toClock(e.DelayUntil), p.toClock(e.EnqueuedAt)
	}
}
