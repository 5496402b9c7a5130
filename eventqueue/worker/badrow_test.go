package worker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// refuses has a script refuse to claim some events, with a SQLSTATE.
func (s *script) refuses(state string, bad ...eventqueue.EventID) {
	s.refuseClaim = func(ids []eventqueue.EventID) error {
		for _, id := range bad {
			if slices.Contains(ids, id) {
				return &pgconn.PgError{Code: state}
			}
		}
		return nil
	}
}

// TestUnwritableRowAffectsNoOtherClaim (I15): the batch is halved around it, and
// from then on it is asked about by itself, in growing intervals.
func TestUnwritableRowAffectsNoOtherClaim(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"22003", "23514", "P0001", "42501"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.refuses(state, 3)
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{Jitter: func(time.Duration) time.Duration { return 0 }})
				defer stop()
				s.notify(s.claimed(1), s.claimed(2), s.claimed(3), s.claimed(4), s.claimed(5))
				rig.Pass(time.Millisecond)
				if got := s.state(); len(got.completions) != 4 || got.runs[3] != 0 {
					s.t.Fatalf("after the first claim: %+v", got)
				}
				// With its notification it comes again and again; others come beside it.
				var waits []time.Duration
				for i := range 12 {
					got := s.state()
					if len(got.requeued) != i+1 {
						s.t.Fatalf("the notification was given back %d times, want %d", len(got.requeued), i+1)
					}
					wait := got.requeued[i].after
					waits = append(waits, wait)
					before := got.claims
					s.notify(s.claimed(3), s.claimed(eventqueue.EventID(10+2*i)))
					rig.Pass(time.Millisecond)
					if got := s.state(); got.claims != before+1 || len(got.acked) != 6+3*i {
						s.t.Fatalf("while it waits: %d statements, and %d acknowledged: %+v", got.claims-before, len(got.acked), got)
					}
					rig.Pass(wait)
					before = s.state().claims
					s.notify(s.claimed(3), s.claimed(eventqueue.EventID(11+2*i)))
					rig.Pass(time.Millisecond)
					if got := s.state(); got.claims != before+2 {
						s.t.Fatalf("when its time has come: %d statements, want one for it and one for the other", got.claims-before)
					}
				}
				if !slices.IsSorted(waits) || waits[0] != time.Second || waits[len(waits)-1] != eventqueue.MaxRequeue {
					s.t.Errorf("it waited %v", waits)
				}
			})
		})
	}
}

// TestUnwritableLoneRowAffectsNoOtherClaim: with a SQLSTATE that may concern all
// rows, and no other event beside it, it still holds up nobody who comes a moment later.
// It is tried again once a minute at least, since something else may be wrong.
func TestUnwritableLoneRowAffectsNoOtherClaim(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"42501", "42883", "22003"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.refuses(state, 1, 2)
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{Jitter: func(time.Duration) time.Duration { return 0 }})
				defer stop()
				for i := range 10 {
					s.notify(s.claimed(1))
					rig.Pass(time.Millisecond)
					s.notify(s.claimed(2))
					rig.Pass(time.Millisecond)
					s.notify(s.claimed(eventqueue.EventID(10 + i)))
					rig.Pass(time.Millisecond)
					got := s.state()
					if len(got.completions) != i+1 || got.runs[1]+got.runs[2] != 0 {
						t.Fatalf("beside rows that were refused for the %d. time: %+v", i+1, got)
					}
					wait := got.requeued[len(got.requeued)-1].after
					if state[:2] == "42" && wait > time.Minute {
						t.Fatalf("it waits %s", wait)
					}
					rig.Pass(wait)
				}
			})
		})
	}
}

// TestManyAdjacentRowsThatNoClaimCanWriteStarveNobody: with a SQLSTATE that may concern all
// rows, and however many of them come before the first event that can be claimed.
func TestManyAdjacentRowsThatNoClaimCanWriteStarveNobody(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"42501", "22003"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				const refused, good = 100, 5
				var bad []eventqueue.EventID
				var all []*worker.ClaimResult
				for id := range eventqueue.EventID(refused + good) {
					if all = append(all, s.claimed(id+1)); id < refused {
						bad = append(bad, id+1)
					}
				}
				s.refuses(state, bad...)
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{Concurrency: len(all), ClaimBatch: len(all)})
				defer stop()
				s.notify(all...)
				rig.Pass(time.Second)
				if got := s.state(); len(got.completions) != good || got.claims > 2*len(all) {
					s.t.Errorf("after %d statements %d events have ended, want %d", got.claims, len(got.completions), good)
				}
			})
		})
	}
}

// TestRepairedRowIsRun: what was refused is forgotten when it is claimed.
func TestRepairedRowIsRun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.refuses("22003", 1)
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Minute)
		s.mu.Lock()
		s.refuseClaim = nil
		s.mu.Unlock()
		s.notify(s.claimed(1), s.claimed(2))
		rig.Pass(time.Second)
		if got := s.state(); got.runs[1] != 1 || got.runs[2] != 1 {
			s.t.Errorf("%+v", got)
		}
	})
}

// TestRefusalOfAllClaimsBlamesNoRow: a right or a table that is missing is
// no event's fault, and when it is there again all of them run.
func TestRefusalOfAllClaimsBlamesNoRow(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.refuses("42501", 0, 1, 2, 3, 4, 5)
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		all := []*worker.ClaimResult{s.claimed(1), s.claimed(2), s.claimed(3), s.claimed(4), s.claimed(5)}
		s.notify(all...)
		rig.Pass(time.Second)
		s.mu.Lock()
		s.refuseClaim = nil
		before := s.claims
		s.mu.Unlock()
		s.notify(all...)
		rig.Pass(time.Second)
		if got := s.state(); len(got.completions) != 5 || got.claims != before+1 {
			s.t.Errorf("%d statements: %+v", got.claims-before, got)
		}
	})
}

// refusesAmong returns an error of the database when one of the ids is bad.
func refusesAmong(ids []eventqueue.EventID, bad eventqueue.EventID) error {
	if slices.Contains(ids, bad) {
		return &pgconn.PgError{Code: "23514"}
	}
	return nil
}

// TestUnrenewableClaimAffectsNoOther (I3, I15): the others are renewed, and their runs go on.
func TestUnrenewableClaimAffectsNoOther(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		var ended []eventqueue.EventID
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			select {
			case <-let:
			case <-ctx.Done():
				s.mu.Lock()
				ended = append(ended, run.ID)
				s.mu.Unlock()
			}
			return nil
		})
		s.renewing = func(claims []worker.Claim) ([]eventqueue.EventID, error) {
			for _, c := range claims {
				if err := refusesAmong([]eventqueue.EventID{c.Event}, 3); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		defer stop()
		s.notify(s.claimed(1), s.claimed(2), s.claimed(3), s.claimed(4), s.claimed(5))
		rig.Pass(10 * time.Minute)
		s.mu.Lock()
		if !slices.Equal(ended, []eventqueue.EventID{3}) {
			s.t.Errorf("the runs of events %v lost their locks, want 3 only", ended)
		}
		s.mu.Unlock()
		close(let)
	})
}

// givesBackAround is a database that refuses to give back event 2.
type givesBackAround struct{ *script }

func (d givesBackAround) GiveBack(ctx context.Context, claim eventqueue.ClaimID, ids []eventqueue.EventID) ([]eventqueue.EventID, error) {
	if err := refusesAmong(ids, 2); err != nil {
		return nil, err
	}
	return d.script.GiveBack(ctx, claim, ids)
}

// TestUnreleasableEventAffectsNoOther (I15, I18): the others of its claim are given back.
func TestUnreleasableEventAffectsNoOther(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.claiming = func(context.Context) error { return errors.New("the answer was lost") }
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.startOn(givesBackAround{s}, worker.Config{GracePeriod: -1})
		s.notify(s.claimed(1), s.claimed(2), s.claimed(3))
		rig.Pass(time.Minute)
		stop()
		if !slices.Equal(s.gaveBack, []eventqueue.EventID{1, 3}) {
			s.t.Errorf("given back were %v", s.gaveBack)
		}
	})
}
