package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// large is a claimed event whose value the claim left out.
func (s *script) large(id eventqueue.EventID) *worker.ClaimResult {
	f := s.claimed(id)
	f.Event.Value, f.ValueApart = nil, true
	return f
}

// TestLargeValueIsReadForItsRun: by the worker that holds the claim, a few at a time, and never in
// the way of other events.
func TestLargeValueIsReadForItsRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		reading, most := 0, 0
		s.values = func(_ context.Context, claim worker.Claim) (json.RawMessage, bool, error) {
			s.mu.Lock()
			reading++
			most = max(most, reading)
			s.mu.Unlock()
			<-time.After(time.Second)
			s.mu.Lock()
			defer s.mu.Unlock()
			reading--
			return json.RawMessage(claim.String()), true, nil
		}
		var values []string
		s.handle(eventqueue.Policy{Timeout: time.Second}, func(ctx context.Context, run *eventqueue.Run) error {
			s.mu.Lock()
			values = append(values, string(run.Value))
			s.mu.Unlock()
			return ctx.Err()
		})
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.large(1), s.large(2), s.large(3), s.large(4), s.large(5), s.large(6), s.claimed(7))
		rig.Pass(100 * time.Millisecond) // completions linger while others run
		if got := s.state(); len(got.completions) != 1 || got.completions[0].Event != 7 {
			s.t.Fatalf("while large values are read: %+v", got)
		}
		rig.Pass(4 * time.Second)
		got := s.state()
		slices.Sort(values)
		if want := []string{"{}", "1#1", "2#1", "3#1", "4#1", "5#1", "6#1"}; !slices.Equal(values[1:], want[1:]) || len(got.completions) != 7 {
			s.t.Errorf("the handler saw %q, want %q: %+v", values, want, got)
		}
		if most != 2 {
			s.t.Errorf("%d values were read at a time", most)
		}
	})
}

// TestUnreadableLargeValueUsesNoAttempt (I18): its handler was not called. Its event is tried
// again a moment later, by itself.
func TestUnreadableLargeValueUsesNoAttempt(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]func(ctx context.Context, _ worker.Claim) (json.RawMessage, bool, error){
		"fails": func(context.Context, worker.Claim) (json.RawMessage, bool, error) {
			return nil, false, errors.New("out of memory")
		},
		"hangs": func(ctx context.Context, _ worker.Claim) (json.RawMessage, bool, error) {
			<-ctx.Done()
			return nil, false, ctx.Err()
		},
		"is another's": func(context.Context, worker.Claim) (json.RawMessage, bool, error) { return nil, false, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.values = values
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{LockTimeout: time.Minute, Jitter: func(time.Duration) time.Duration { return 0 }})
				defer stop()
				s.notify(s.large(1))
				rig.Pass(31 * time.Second)
				got := s.state()
				if len(got.completions) != 1 || got.completions[0].Label != machine.Released || got.runs[1] != 0 {
					s.t.Fatalf("%+v, want it released without a run", got)
				}
				if n := len(got.requeued); n == 0 || got.requeued[n-1].after != time.Second { // the others extend its lease
					s.t.Errorf("its notification: %+v, want it given back for a second", got.requeued)
				}
			})
		})
	}
}

// TestLargeCompletionDelaysNoOther (I15): the value goes to event_log, which takes long.
func TestLargeCompletionDelaysNoOther(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.values = func(context.Context, worker.Claim) (json.RawMessage, bool, error) {
			return json.RawMessage("1"), true, nil
		}
		s.completing = func(_ context.Context, completions []worker.Completion) error {
			for _, c := range completions {
				if c.Event < 4 {
					<-time.After(time.Second)
				}
			}
			return nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.large(1), s.large(2), s.large(3), s.claimed(4), s.claimed(5))
		rig.Pass(100 * time.Millisecond)
		s.notify(s.claimed(6))
		rig.Pass(100 * time.Millisecond)
		if got := s.state(); len(got.completions) != 3 || got.completions[0].Event < 4 {
			s.t.Fatalf("while large ones are written: %+v", got)
		}
		rig.Pass(3 * time.Second)
		if got := s.state(); len(got.completions) != 6 {
			s.t.Errorf("after they were written: %+v", got)
		}
	})
}

// TestStopDoesNotWaitForALargeValue (I13, I18): whoever stops while it is read gives the event back unrun, also if the
// value comes after all.
func TestStopDoesNotWaitForALargeValue(t *testing.T) {
	t.Parallel()
	for name, deaf := range map[string]bool{"the read ends with its context": false, "the read ignores it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.values = func(ctx context.Context, _ worker.Claim) (json.RawMessage, bool, error) {
					if deaf {
						<-time.After(20 * time.Second)
						return json.RawMessage("1"), true, nil
					}
					<-ctx.Done()
					return nil, false, ctx.Err()
				}
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{GracePeriod: time.Second})
				s.notify(s.large(1), s.large(2), s.large(3))
				rig.Pass(time.Millisecond)
				began := time.Now()
				stop()
				if took := time.Since(began); took > 4*time.Second {
					s.t.Errorf("the stop took %s", took)
				}
				rig.Pass(time.Minute)
				got := s.state()
				if len(got.runs) != 0 || len(got.completions) != 3 {
					s.t.Fatalf("%+v, want three events released unrun", got)
				}
				for _, c := range got.completions {
					if c.Label != machine.Released {
						s.t.Errorf("%+v, want it released", c)
					}
				}
			})
		})
	}
}
