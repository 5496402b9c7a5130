package pgstore_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
)

// sums are what was counted in the last hour, by scope.
func (s *session) sums(filter inspect.Filter, resolution inspect.Resolution) []inspect.Minute {
	s.Helper()
	minutes, err := s.store.Minutes(s.Context(), filter, time.Hour, resolution)
	if err != nil {
		s.Fatalf("Minutes: %v", err)
	}
	if !slices.IsSortedFunc(minutes, func(a, b inspect.Minute) int { return a.Begins.Compare(b.Begins) }) {
		s.Errorf("minutes are not in their order: %s", text(minutes...))
	}
	return inspect.SumMinutes(minutes)
}

// handIn adds counts to the current minute.
func (s *session) handIn(counts ...minutes.Counts) {
	s.Helper()
	if _, err := s.store.AddMinutes(s.Context(), counts); err != nil {
		s.Fatalf("AddMinutes: %v", err)
	}
}

// countPending does a whole round.
func (s *session) countPending() {
	s.Helper()
	for after := (eventqueue.Scope{}); ; {
		waiting, err := s.store.CountWaiting(s.Context(), after)
		if err != nil {
			s.Fatalf("CountWaiting: %v", err)
		}
		if after = waiting.Next; after == (eventqueue.Scope{}) {
			return
		}
	}
}

// text shows minutes with all their fields.
func text(minutes ...inspect.Minute) string {
	var b strings.Builder
	for i := range minutes {
		m := &minutes[i]
		fmt.Fprintf(&b, "\n%s, %s: %d emitted, %d completed, %d failed, %d retried, waits %v, runs %v", m.Begins.UTC().Format(time.RFC3339), m.Scope,
			m.Emitted, m.Completed, m.Failed, m.Retried, m.Wait, m.Run)
		if m.Pending != nil {
			fmt.Fprintf(&b, ", %d pending", *m.Pending)
		}
		if m.OldestDue != nil {
			fmt.Fprintf(&b, ", due for %s", *m.OldestDue)
		}
	}
	return b.String()
}

// scopeOn is the handler on the n-th of many canvases.
func scopeOn(n int) eventqueue.Scope {
	other := scope
	binary.BigEndian.PutUint32(other.Canvas[4:], uint32(n)+1)
	return other
}

var minuteCases = []testCase{
	{"counts of several hand-ins add up", func(s *session) {
		counts := func(wait, run minutes.Histogram) minutes.Counts {
			return minutes.Counts{Scope: scope, Emitted: 1, Completed: 2, Failed: 3, Retried: 4, Wait: wait, Run: run}
		}
		other := scopeOn(7)
		s.handIn(counts(minutes.Histogram{1, 2}, nil), minutes.Counts{Scope: other, Emitted: 5})
		s.handIn(counts(minutes.Histogram{1, 0, 5}, minutes.Histogram{7}))
		for _, resolution := range []inspect.Resolution{inspect.PerMinute, inspect.PerHour} {
			sums := s.sums(inspect.FilterOf(scope), resolution)
			if len(sums) != 1 {
				s.Fatalf("per %s: the handler has %s", resolution, text(sums...))
			}
			got := &sums[0]
			if got.Scope != scope || got.Emitted != 2 || got.Completed != 4 || got.Failed != 6 || got.Retried != 8 ||
				!slices.Equal(got.Wait, minutes.Histogram{2, 2, 5}) || !slices.Equal(got.Run, minutes.Histogram{7}) {
				s.Errorf("per %s: the sums are %s", resolution, text(*got))
			}
			if all := s.sums(inspect.Filter{Module: scope.Module}, resolution); len(all) != 2 {
				s.Errorf("per %s: two handlers have %+v", resolution, text(all...))
			}
			if none := s.sums(inspect.Filter{Name: "another"}, resolution); len(none) != 0 {
				s.Errorf("per %s: another handler has %s", resolution, text(none...))
			}
		}
	}},
	{"a minute has a bounded number of rows and all counts", func(s *session) {
		const canvases = 1200
		counts := make([]minutes.Counts, canvases)
		for n := range counts {
			counts[n] = minutes.Counts{Scope: scopeOn(n), Completed: 1, Wait: minutes.Histogram{0, 1}}
		}
		s.handIn(counts...)
		sums := s.sums(inspect.Filter{}, inspect.PerMinute)
		if len(sums) != 1001 {
			s.Fatalf("there are %d rows, not one for each of 1,000 canvases and one for all others", len(sums))
		}
		// By canvas, so those without one come first; and the first that were handed in have the rows.
		others := &sums[0]
		if others.Canvas != (eventqueue.CanvasID{}) || others.Completed != canvases-1000 || others.Wait.Count() != canvases-1000 {
			s.Errorf("the others have %s", text(*others))
		}
		if last := sums[1000].Scope; last != scopeOn(999) {
			s.Errorf("the last row is of %+v", last)
		}
	}},
	{"what is pending is counted by handler, with the age of the oldest that may run", func(s *session) {
		ids := s.insert(3)
		s.mustClaim(ids[0], 1)
		s.insert(1, func(e *eventqueue.NewEvent) { e.Name, e.Delay = "later", time.Hour })
		s.countPending()
		s.countPending() // replaces the first count
		sums := s.sums(inspect.Filter{}, inspect.PerMinute)
		if len(sums) != 2 {
			s.Fatalf("two handlers have %s", text(sums...))
		}
		greet, later := &sums[0], &sums[1]
		if greet.Name != scope.Name || greet.Pending == nil || *greet.Pending != 3 || greet.OldestDue == nil || *greet.OldestDue < 0 {
			s.Errorf("%s has %s", scope.Name, text(*greet))
		}
		if later.Name != "later" || later.Pending == nil || *later.Pending != 1 || later.OldestDue != nil {
			s.Errorf("the delayed handler has %s", text(*later))
		}
	}},
	{"what waits is counted with what runs, is held back and has been due for the longest time", func(s *session) {
		waiting := func(want maintenance.Waiting, oldest eventqueue.EventID) {
			s.Helper()
			got, err := s.store.CountWaiting(s.Context(), eventqueue.Scope{})
			if err != nil {
				s.Fatalf("CountWaiting: %v", err)
			}
			if (got.OldestDue > 0) != (oldest != 0) || got.Running != want.Running || got.Pending != want.Pending || got.Held != want.Held || got.EndedOf != want.EndedOf || len(got.Unserved) != 0 {
				s.Errorf("waiting are %+v, want %+v", got, want)
			}
			id, modifier, err := s.store.OldestDue(s.Context(), scope)
			if err != nil || id != oldest && (oldest != 0 || want.Held == 0) || id != 0 && modifier != key.Modifier {
				s.Errorf("the oldest due event is %d with modifier %q, %v, want %d", id, modifier, err, oldest)
			}
		}
		waiting(maintenance.Waiting{}, 0)
		ids := s.insert(3)
		s.insert(1, func(e *eventqueue.NewEvent) { e.Delay = time.Hour })
		waiting(maintenance.Waiting{Pending: 4}, ids[0])
		s.mustClaim(ids[0], 1)
		waiting(maintenance.Waiting{Pending: 4, Running: 1}, ids[1])
		s.handIn(minutes.Counts{Scope: scope, Completed: 1})
		waiting(maintenance.Waiting{Pending: 4, Running: 1, EndedOf: 1}, ids[1])
		s.rule(machine.PauseRule, true)
		waiting(maintenance.Waiting{Pending: 4, Running: 1, Held: 4, EndedOf: 1}, 0)
	}},
	{"an hour is summed up after it, and what is young is not pruned", func(s *session) {
		s.handIn(minutes.Counts{Scope: scope, Emitted: 1})
		deleted, err := maintenance.MaintainMinutes(s.Context(), s.store)
		if err != nil || deleted != 0 {
			s.Errorf("%d rows were deleted, %v", deleted, err)
		}
		if sums := s.sums(inspect.FilterOf(scope), inspect.PerHour); len(sums) != 1 || sums[0].Emitted != 1 {
			s.Errorf("the hour has %s", text(sums...))
		}
		// As if the minutes were to be retained until the next one begins.
		if _, err := s.store.PruneMinutes(s.Context(), -2*time.Minute, time.Hour, 10); err != nil {
			s.Fatalf("PruneMinutes: %v", err)
		}
		if sums := s.sums(inspect.FilterOf(scope), inspect.PerMinute); len(sums) != 0 {
			s.Errorf("after the pruning there are %s", text(sums...))
		}
	}},
}
