package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// suspect is an event that was in hand when a worker died.
func (s *script) suspect(id eventqueue.EventID, company int) *worker.ClaimResult {
	f := s.claimed(id)
	f.Company = company
	return f
}

// blocking registers a handler that returns when the returned function says so, or its context ends.
func (s *script) blocking() (release func(id eventqueue.EventID)) {
	gates := map[eventqueue.EventID]chan struct{}{}
	for id := eventqueue.EventID(1); id < 30; id++ {
		gates[id] = make(chan struct{})
	}
	s.handle(eventqueue.Policy{}, func(ctx context.Context, run *eventqueue.Run) error {
		select {
		case <-gates[run.ID]:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return func(id eventqueue.EventID) { close(gates[id]); rig.Pass(100 * time.Millisecond) }
}

// ran are the events whose handlers were called.
func (st state) ran() (ids []eventqueue.EventID) {
	for id := range st.runs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// TestSuspectsRunWithNoMoreThanEachAllows (I15): beside events that are no suspects, in the order in which they came.
func TestSuspectsRunWithNoMoreThanEachAllows(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		release := s.blocking()
		defer s.start(worker.Config{Concurrency: 20})()
		expect := func(when string, together []int, ids ...eventqueue.EventID) {
			s.t.Helper()
			rig.Pass(100 * time.Millisecond)
			if got := s.state().ran(); !slices.Equal(got, ids) || !slices.Equal(s.together, together) {
				s.t.Fatalf("%s, %v ran, recorded as %v together; want %v and %v", when, got, s.together, ids, together)
			}
		}
		s.notify(s.suspect(1, 3), s.suspect(2, 2), s.suspect(3, worker.AnyCompany), s.suspect(4, 1), s.suspect(5, worker.AnyCompany), s.claimed(6))
		expect("at first", []int{2}, 1, 2, 6)
		release(1)
		expect("when one has ended", []int{2, 2}, 1, 2, 3, 6)
		release(2)
		expect("while one runs that is to be alone next", []int{2, 2}, 1, 2, 3, 6)
		release(3)
		expect("alone", []int{2, 2, 1}, 1, 2, 3, 4, 6)
		s.notify(s.claimed(7))
		expect("beside it", []int{2, 2, 1}, 1, 2, 3, 4, 6, 7)
		release(4)
		expect("in the end", []int{2, 2, 1, 1}, 1, 2, 3, 4, 5, 6, 7)
		for _, id := range []eventqueue.EventID{5, 6, 7} {
			release(id)
		}
		rig.Pass(time.Second)
		if got := s.state(); len(got.completions) != 7 {
			s.t.Errorf("%d events have ended: %+v", len(got.completions), got.completions)
		}
	})
}

// TestFirstDeathDelaysNothing: what is known of no event keeps none of them waiting.
func TestFirstDeathDelaysNothing(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.blocking()
		defer s.start(worker.Config{Concurrency: 20})()
		var found []*worker.ClaimResult
		for id := eventqueue.EventID(1); id <= 18; id++ {
			found = append(found, s.suspect(id, worker.AnyCompany))
		}
		s.notify(found...)
		rig.Pass(100 * time.Millisecond)
		if got := s.state(); len(got.runs) != 18 || !slices.Equal(s.together, []int{18}) {
			s.t.Errorf("%d run, recorded as %v together", len(got.runs), s.together)
		}
	})
}

// TestSuspectsThatWaitKeepTheirClaimsForALockTimeout, and then another worker may have them. A worker that stops releases
// them at once.
func TestSuspectsThatWaitKeepTheirClaimsForALockTimeout(t *testing.T) {
	t.Parallel()
	for name, stops := range map[string]bool{"it waits for too long": false, "the worker stops": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, _ *eventqueue.Run) error {
					<-ctx.Done()
					return ctx.Err()
				})
				stop := s.start(worker.Config{Concurrency: 20, LockTimeout: time.Minute, GracePeriod: time.Hour})
				s.notify(s.suspect(1, 1), s.suspect(2, 1))
				rig.Pass(50 * time.Second)
				if got := s.state(); len(got.completions) != 0 || !slices.Equal(got.ran(), []eventqueue.EventID{1}) {
					s.t.Errorf("after 50 s: %+v", got)
				}
				if stops {
					go stop()
				}
				rig.Pass(12 * time.Second)
				if got := s.state(); len(got.completions) != 1 || got.completions[0].Event != 2 || got.completions[0].Label != machine.Released || got.runs[2] != 0 {
					s.t.Errorf("after 62 s: %+v", got)
				}
				if !stops {
					go stop()
				}
				rig.Pass(2 * time.Hour)
			})
		})
	}
}

// TestNoMoreThanHalfOfTheSlotsWaitForSuspects (I15): the others are for events beside them.
func TestNoMoreThanHalfOfTheSlotsWaitForSuspects(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.blocking()
		defer s.start(worker.Config{Concurrency: 8})()
		var found []*worker.ClaimResult
		for id := eventqueue.EventID(1); id <= 7; id++ {
			found = append(found, s.suspect(id, 1))
		}
		s.notify(found...)
		rig.Pass(100 * time.Millisecond)
		var released []eventqueue.EventID
		for _, end := range s.state().completions {
			released = append(released, end.Event)
		}
		if want := []eventqueue.EventID{6, 7}; !slices.Equal(released, want) {
			s.t.Errorf("%v were released, want %v", released, want)
		}
	})
}

// lostElsewhere is the error of a run that another process has lost.
type lostElsewhere struct{ error }

func (lostElsewhere) Lost() bool { return true }

// TestRunThatAnotherProcessHasLostMakesASuspect (I15): it is a failed attempt only of the event that was the only suspect.
func TestRunThatAnotherProcessHasLostMakesASuspect(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		died := make(chan struct{})
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error {
			<-died
			return fmt.Errorf("target: %w", lostElsewhere{errors.New("EOF")})
		})
		defer s.start(worker.Config{Concurrency: 20})()
		s.notify(s.claimed(1), s.suspect(2, worker.AnyCompany), s.suspect(3, 6), s.suspect(4, worker.AnyCompany), s.suspect(5, worker.AnyCompany))
		close(died)
		rig.Pass(5 * time.Second)
		s.notify(s.suspect(6, 9))
		rig.Pass(5 * time.Second)
		for _, end := range s.state().completions {
			want := map[eventqueue.EventID]int{1: worker.AnyCompany, 6: 1}[end.Event]
			if want == 0 {
				want = 2 // of four
			}
			label := machine.Released
			if end.Event == 6 {
				label = machine.RetryAllowed
			}
			if end.Company != want || end.Label != label {
				s.t.Errorf("event %s ended as %s with company %d, want %s with %d", end.Event, end.Label, end.Company, label, want)
			}
		}
		if n := len(s.state().completions); n != 6 {
			s.t.Errorf("%d runs have ended", n)
		}
	})
}

// TestSuspectWaitsWhileACompanionCannotBeRecorded (I15): what runs already would otherwise be taken for one that died alone.
func TestSuspectWaitsWhileACompanionCannotBeRecorded(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.blocking()
		defer s.start(worker.Config{Concurrency: 20})()
		s.notify(s.suspect(1, worker.AnyCompany))
		rig.Pass(100 * time.Millisecond)
		s.mu.Lock()
		s.renewing = func(claims []worker.Claim) ([]eventqueue.EventID, error) {
			if claims[0].Event == 1 {
				return nil, errors.New("its row is being written")
			}
			return nil, nil
		}
		s.mu.Unlock()
		s.notify(s.suspect(2, worker.AnyCompany))
		rig.Pass(3 * time.Second)
		if got := s.state().ran(); !slices.Equal(got, []eventqueue.EventID{1}) {
			s.t.Errorf("%v run though the first is recorded as alone", got)
		}
		s.mu.Lock()
		s.renewing = nil
		s.mu.Unlock()
		rig.Pass(3 * time.Second)
		if got := s.state().ran(); !slices.Equal(got, []eventqueue.EventID{1, 2}) {
			s.t.Errorf("%v run in the end", got)
		}
	})
}

// TestSuspectWaitsForOneThatRunsAlone (I15), however much company it allows itself.
func TestSuspectWaitsForOneThatRunsAlone(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		release := s.blocking()
		defer s.start(worker.Config{Concurrency: 20})()
		s.notify(s.suspect(1, 1))
		s.notify(s.suspect(2, worker.AnyCompany))
		rig.Pass(3 * time.Second)
		if got := s.state().ran(); !slices.Equal(got, []eventqueue.EventID{1}) {
			s.t.Errorf("%v run, and event 1 was to be alone", got)
		}
		release(1)
		if got := s.state().ran(); !slices.Equal(got, []eventqueue.EventID{1, 2}) {
			s.t.Errorf("%v run in the end", got)
		}
	})
}

// TestSuspectOverItsTimeIsCompanyForAsLongAsItsClaimIsRenewed (I15): to record that it has company renews the claim, so another one
// that is to run alone waits until that has expired.
func TestSuspectOverItsTimeIsCompanyForAsLongAsItsClaimIsRenewed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		gates := map[eventqueue.EventID]chan struct{}{1: make(chan struct{}), 2: make(chan struct{}), 3: make(chan struct{})}
		s.handle(eventqueue.Policy{Timeout: time.Second}, func(_ context.Context, run *eventqueue.Run) error {
			<-gates[run.ID] // whatever its context
			return nil
		})
		defer s.start(worker.Config{Concurrency: 20, LockTimeout: 10 * time.Second})()
		ran := func(when string, ids ...eventqueue.EventID) {
			s.t.Helper()
			if got := s.state().ran(); !slices.Equal(got, ids) {
				s.t.Errorf("%s %v ran, want %v", when, got, ids)
			}
		}
		s.notify(s.suspect(1, 5))
		rig.Pass(6 * time.Second)
		s.notify(s.suspect(2, 5)) // 1 is recorded again, until 16 s
		close(gates[2])
		rig.Pass(5 * time.Second)
		s.notify(s.suspect(3, 1))
		rig.Pass(3 * time.Second)
		ran("while the claim of 1 is valid", 1, 2)
		rig.Pass(6 * time.Second)
		ran("when it has expired", 1, 2, 3)
		close(gates[1])
		close(gates[3])
	})
}

// TestEndedSuspectRunsBesideNoOther (I15): it may still kill its worker until its handler returns, and another one would be blamed.
func TestEndedSuspectRunsBesideNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout   time.Duration
		cancelled bool
	}{
		"cancelled":      {time.Hour, true},
		"takes too long": {2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				var mu sync.Mutex
				began := map[eventqueue.EventID]time.Time{}
				var returned time.Time
				s.handle(eventqueue.Policy{Timeout: c.timeout}, func(ctx context.Context, run *eventqueue.Run) error {
					mu.Lock()
					began[run.ID] = time.Now()
					mu.Unlock()
					if run.ID != 1 {
						return nil
					}
					if c.cancelled {
						s.mu.Lock()
						s.ending = func(w *worker.WriteResult) { w.Cancelled = append(w.Cancelled, run.ID) }
						s.mu.Unlock()
					}
					<-ctx.Done()
					<-time.After(3 * time.Second)
					mu.Lock()
					defer mu.Unlock()
					returned = time.Now()
					return errors.New("ended")
				})
				defer s.start(worker.Config{Concurrency: 20, Heartbeat: time.Second})()
				s.notify(s.suspect(1, 1), s.suspect(2, 1))
				rig.Pass(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if began[2].Before(returned) {
					t.Errorf("the second suspect began %s before the handler of the first had returned", returned.Sub(began[2]))
				}
			})
		})
	}
}

// TestNextSuspectWaitsForAWrittenEnd (I15): a suspect whose end is not written would be blamed if the next one killed the worker.
func TestNextSuspectWaitsForAWrittenEnd(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		var mu sync.Mutex
		var written, began time.Time
		s.handle(eventqueue.Policy{}, func(_ context.Context, run *eventqueue.Run) error {
			if run.ID == 2 {
				mu.Lock()
				defer mu.Unlock()
				began = time.Now()
			}
			return nil
		})
		s.completing = func(context.Context, []worker.Completion) error {
			<-time.After(3 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			if written.IsZero() {
				written = time.Now()
			}
			return nil
		}
		defer s.start(worker.Config{Concurrency: 20})()
		s.notify(s.suspect(1, 1), s.suspect(2, 1))
		rig.Pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if written.IsZero() || began.Before(written) {
			t.Errorf("the second suspect began %s before the end of the first was written", written.Sub(began))
		}
	})
}
