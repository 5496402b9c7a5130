package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestLongRunKeepsItsLockAndLease (I3): never longer than half of either
// without a renewal.
func TestLongRunKeepsItsLockAndLease(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(context.Context, *eventqueue.Run) error { <-let; return nil })
		last, longest := time.Now(), time.Duration(0)
		s.renewing = func([]worker.Claim) ([]eventqueue.EventID, error) {
			longest = max(longest, time.Since(last))
			last = time.Now()
			return nil, nil
		}
		var renewals []worker.Renewal // by one goroutine
		stop := s.start(worker.Config{LockTimeout: time.Minute, Lease: time.Minute, ObserveRenewal: func(r worker.Renewal) { renewals = append(renewals, r) }})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(30 * time.Minute)
		for _, r := range renewals {
			if r.Claims != 1 || r.Age <= 0 || r.Age > 30*time.Second || r.Err != nil {
				s.t.Errorf("a renewal is reported as %+v", r)
			}
		}
		if len(renewals) < 60 {
			s.t.Errorf("%d renewals are reported in half an hour", len(renewals))
		}
		got := s.state()
		close(let)
		if longest = max(longest, time.Since(last)); longest > 30*time.Second {
			s.t.Errorf("the lock was not renewed for %s", longest)
		}
		if len(got.requeued) < 30 || got.requeued[0].after != time.Minute {
			s.t.Errorf("the lease was extended %d times in half an hour", len(got.requeued))
		}
	})
}

// TestLostClaimEndsItsRun (I3, I5): the handler is told, and why.
func TestLostClaimEndsItsRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		renewing func([]worker.Claim) ([]eventqueue.EventID, error)
		after    time.Duration // it has been told
	}{
		{"another has taken over", func([]worker.Claim) ([]eventqueue.EventID, error) {
			return []eventqueue.EventID{1}, nil
		}, 40 * time.Second},
		{"the database does not answer", func([]worker.Claim) ([]eventqueue.EventID, error) {
			return nil, errors.New("the database is down")
		}, 2 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.renewing = c.renewing
				let := make(chan struct{})
				var cause error
				s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, _ *eventqueue.Run) error {
					select {
					case <-ctx.Done():
						cause = context.Cause(ctx)
					case <-let:
					}
					return nil
				})
				stop := s.start(worker.Config{LockTimeout: time.Minute})
				s.notify(s.claimed(1))
				rig.Pass(c.after)
				close(let)
				stop()
				if !errors.Is(cause, eventqueue.ErrLockLost) {
					s.t.Errorf("the handler was told %v", cause)
				}
			})
		})
	}
}

// TestHandlerThatIgnoresItsContextLosesItsLock (I13): past its timeout nobody renews for it, so
// that another worker may try.
func TestHandlerThatIgnoresItsContextLosesItsLock(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{Timeout: 2 * time.Minute}, func(context.Context, *eventqueue.Run) error { <-let; return nil })
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		s.notify(s.claimed(1))
		rig.Pass(2 * time.Minute)
		before := s.state()
		rig.Pass(time.Hour)
		after := s.state()
		close(let)
		stop()
		if before.renewals == 0 || after.renewals != before.renewals || len(after.requeued) != len(before.requeued) {
			s.t.Errorf("%d renewals and %d extensions in time, %d and %d after an hour", before.renewals, len(before.requeued),
				after.renewals, len(after.requeued))
		}
	})
}

// TestUnwrittenCompletionKeepsItsLock (I3), past the handler's timeout too,
// so that nobody runs again what has been done.
func TestUnwrittenCompletionKeepsItsLock(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		down := true
		s.refuse = func([]worker.Completion) error {
			if down {
				return errors.New("the database is down")
			}
			return nil
		}
		s.handle(eventqueue.Policy{Timeout: time.Minute}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(10 * time.Minute)
		renewals := s.state().renewals
		s.mu.Lock()
		down = false
		s.mu.Unlock()
		rig.Pass(time.Minute)
		if got := s.state(); renewals < 20 || len(got.completions) != 1 || len(got.acked) != 1 {
			s.t.Errorf("%d renewals in ten minutes, then %+v", renewals, got)
		}
	})
}

// TestIdleWorkerSendsNoStatement for an hour.
func TestIdleWorkerSendsNoStatement(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		before := s.state()
		rig.Pass(time.Hour)
		if after := s.state(); after.claims != before.claims || after.renewals != 0 || len(after.completions) != len(before.completions) {
			s.t.Errorf("while idle: %+v, before: %+v", after, before)
		}
	})
}

// lateRenewals answers one renewal late, and no other.
type lateRenewals struct {
	*script
	late     time.Duration
	mu       sync.Mutex
	askedAt  time.Time
	renewals int
}

func (l *lateRenewals) Renew(ctx context.Context, claims []worker.Claim) (worker.WriteResult, error) {
	if len(claims) == 0 {
		return worker.WriteResult{}, nil
	}
	l.mu.Lock()
	l.renewals++
	first := l.renewals == 1
	if first {
		l.askedAt = time.Now()
	}
	l.mu.Unlock()
	if !first {
		return worker.WriteResult{}, errors.New("down")
	}
	<-time.After(l.late)
	return l.script.Renew(ctx, claims)
}

// TestLateRenewalHoldsFromItsRequest (I3): the database has written the lock's time before it answered, so the lock
// lasts from when it was asked, however late the answer is.
func TestLateRenewalHoldsFromItsRequest(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 10 * time.Second, 29 * time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				l := &lateRenewals{script: s, late: late}
				var ended time.Time
				s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, _ *eventqueue.Run) error {
					<-ctx.Done()
					ended = time.Now()
					return ctx.Err()
				})
				stop := s.startOn(l, worker.Config{LockTimeout: time.Minute, Lease: time.Minute})
				defer stop()
				s.notify(s.claimed(1))
				rig.Pass(10 * time.Minute)
				if held := ended.Sub(l.askedAt); ended.IsZero() || held < time.Minute || held > time.Minute*9/8 {
					s.t.Errorf("a renewal that is answered after %s holds for %s", late, held)
				}
			})
		})
	}
}

// TestWorkerKeepsItsNewestClaimOnly (I5): after a freeze a worker may take over
// its own expired lock while the handler of the old claim still runs. It ends that
// run, and names the event once in everything that it asks afterwards.
func TestWorkerKeepsItsNewestClaimOnly(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		var cause error
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			<-let
			if run.Attempt == 1 {
				cause = context.Cause(ctx)
				return nil
			}
			return eventqueue.Permanent(errors.New("no luck"))
		})
		var renewed []worker.Claim
		s.renewing = func(claims []worker.Claim) ([]eventqueue.EventID, error) {
			renewed = slices.Clone(claims)
			return nil, nil
		}
		stop := s.start(worker.Config{LockTimeout: time.Minute})
		older, newer := s.claimed(1), s.claimed(1)
		older.Attempt, newer.Attempt = 1, 2
		s.notify(older)
		rig.Pass(time.Second)
		s.notify(newer)
		rig.Pass(5 * time.Minute)
		close(let)
		stop()
		want := worker.Claim{Event: 1, Attempt: 2, ID: s.asked[1]}
		if !slices.Equal(renewed, []worker.Claim{want}) {
			s.t.Errorf("renewed were %+v, want the newest claim alone", renewed)
		}
		if !errors.Is(cause, eventqueue.ErrLockLost) {
			s.t.Errorf("the run of the old claim was told %v", cause)
		}
		if len(s.completions) != 1 || s.completions[0].Claim != want {
			s.t.Errorf("written were %+v, want the end of the newest claim alone", s.completions)
		}
	})
}
