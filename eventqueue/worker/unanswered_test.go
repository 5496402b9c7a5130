package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestUnansweredClaimIsReleased (I18) in the background, as soon as the database
// answers, and also by a worker that stops.
func TestUnansweredClaimIsReleased(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.claiming = func(context.Context) error { return errors.New("the answer was lost") }
		down := true
		s.givingBack = func() error {
			if down {
				return errors.New("the answer was lost")
			}
			return nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{GracePeriod: -1})
		s.notify(s.claimed(1), s.claimed(2))
		rig.Pass(time.Minute)
		if got := s.state(); len(got.completions) != 0 || got.runs[1] != 0 {
			s.t.Errorf("%+v", got)
		}
		s.mu.Lock()
		down = false
		s.mu.Unlock()
		stop()
		if !slices.Equal(s.gaveBack, []eventqueue.EventID{1, 2}) {
			s.t.Errorf("given back were %v", s.gaveBack)
		}
	})
}

// tardy is a database in which a claim whose answer was lost commits after it was given
// back so many times.
type tardy struct {
	*script
	vain, tries int
}

func (d *tardy) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) ([]eventqueue.EventID, error) {
	d.mu.Lock()
	d.tries++
	vain := d.tries <= d.vain
	d.mu.Unlock()
	if vain {
		return nil, nil
	}
	return d.script.GiveBack(ctx, claim, ids)
}

// TestClaimCommittedAfterItsReleaseIsReleasedAgain (I13, I18): after some seconds,
// and not when its lock has expired, also while the worker stops. One that has never committed costs a few
// statements, and a stop four seconds.
func TestClaimCommittedAfterItsReleaseIsReleasedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vain, tries, given int
		after, grace       time.Duration
		stops              time.Duration
	}{
		"soon":                     {1, 2, 2, 2 * time.Second, 0, 0},
		"late":                     {3, 4, 2, 15 * time.Second, 0, 0},
		"never":                    {1000, 4, 0, 10 * time.Minute, 0, 0},
		"at a stop":                {1, 2, 2, 500 * time.Millisecond, -1, 500 * time.Millisecond},
		"late at a stop":           {2, 3, 2, 500 * time.Millisecond, 0, 3500 * time.Millisecond},
		"never at a stop":          {1000, 4, 0, 500 * time.Millisecond, 0, 3500 * time.Millisecond},
		"never in a short stop":    {1000, 2, 0, 500 * time.Millisecond, -1, 1100 * time.Millisecond},
		"stop before the last try": {1000, 4, 0, 5 * time.Second, 0, 0},
		"not answered":             {0, 1, 2, 10 * time.Minute, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.claiming = func(context.Context) error { return errors.New("the answer was lost") }
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				db := &tardy{script: s, vain: c.vain}
				stop := s.startOn(db, worker.Config{GracePeriod: c.grace})
				s.notify(s.claimed(1), s.claimed(2))
				rig.Pass(c.after)
				began := time.Now()
				stop()
				if took := time.Since(began); took < c.stops || took > c.stops+100*time.Millisecond {
					s.t.Errorf("the stop took %s, want %s", took, c.stops)
				}
				if db.tries != c.tries || len(s.gaveBack) != c.given {
					s.t.Errorf("%d tries have given back %v, want %d and %d events", db.tries, s.gaveBack, c.tries, c.given)
				}
			})
		})
	}
}

// TestRecordedRunBeginsAfterItsRecord (I18), and not if the answer is lost.
func TestRecordedRunBeginsAfterItsRecord(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		lost := true
		s.renewing = func([]worker.Claim) ([]eventqueue.EventID, error) {
			if lost {
				return nil, errors.New("the answer was lost")
			}
			return nil, nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		f := s.claimed(1)
		f.Company = worker.AnyCompany
		s.notify(f, s.claimed(2))
		rig.Pass(time.Second)
		if got := s.state(); got.runs[1] != 0 || got.runs[2] != 1 || len(got.requeued) != 1 || got.completions[0].Label != machine.Released {
			s.t.Errorf("without an answer: %+v, given back %v", got, s.gaveBack)
		}
		s.mu.Lock()
		lost = false
		s.mu.Unlock()
		s.notify(f)
		rig.Pass(time.Second)
		if got := s.state(); got.runs[1] != 1 || got.renewals != 2 {
			s.t.Errorf("with one: %+v", got)
		}
	})
}
