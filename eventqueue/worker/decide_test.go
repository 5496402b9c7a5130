package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestWhenANotificationComesBack (I6, I11, I13): never too early, never at once,
// and not at all when something else brings the event back.
func TestWhenANotificationComesBack(t *testing.T) {
	t.Parallel()
	present := machine.Facts{Present: true, HandlerKnown: true}
	with := func(change func(*machine.Facts)) machine.Facts { f := present; change(&f); return f }
	delayed := func(d time.Duration) machine.Facts { return with(func(f *machine.Facts) { f.Delay = d }) }
	locked := func(f *machine.Facts) { f.Lock, f.LockRemaining = machine.LockHeld, 30*time.Second }
	pausedAndLocked := with(func(f *machine.Facts) { locked(f); f.Rule = machine.PauseRule })
	for _, c := range []struct {
		name  string
		facts machine.Facts
		drop  bool
		after time.Duration // at least
		group bool          // the claim has a place in an ordering group
	}{
		{"gone", machine.Facts{}, true, 0, false},
		{"paused", with(func(f *machine.Facts) { f.Rule = machine.PauseRule }), true, 0, false},
		{"blocked", with(func(f *machine.Facts) { f.Rule = machine.BlockRule }), true, 0, false},
		{"early by a moment", delayed(time.Microsecond), false, time.Microsecond, false},
		{"early by a little", delayed(50 * time.Millisecond), false, 50 * time.Millisecond, false},
		{"early by more", delayed(12_345 * time.Millisecond), false, 12_345 * time.Millisecond, false},
		{"early by all that a notifier can carry", delayed(eventqueue.MaxRequeue), false, eventqueue.MaxRequeue, false},
		{"early by more than that", delayed(eventqueue.MaxRequeue + 1), true, 0, false},
		{"locked", with(locked), false, 30 * time.Second, false},
		{"being written", present, false, time.Second, false},
		{"paused while it runs", pausedAndLocked, true, 0, false},
		{"paused while it has a place in its group and its holder may be dead", pausedAndLocked, false, 30 * time.Second, true},
		{"put off for long while it has a place in its group and its holder may be dead", with(func(f *machine.Facts) { locked(f); f.Delay = time.Hour }), false, 30 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
				stop := s.start(worker.Config{})
				defer stop()
				f := s.claimed(1)
				f.Facts, f.Grouped = c.facts, c.group
				s.notify(f)
				rig.Pass(time.Second)
				got := s.state()
				switch {
				case len(got.runs) != 0 || len(got.completions) != 0:
					s.t.Errorf("it ran: %+v", got)
				case c.drop && (len(got.acked) != 1 || len(got.requeued) != 0):
					s.t.Errorf("it was not dropped: %+v", got)
				case !c.drop && (len(got.acked) != 0 || len(got.requeued) != 1):
					s.t.Errorf("it was not given back: %+v", got)
				case !c.drop && got.requeued[0].after < c.after:
					s.t.Errorf("it comes back after %s, want at least %s", got.requeued[0].after, c.after)
				}
			})
		})
	}
}

// TestNotificationIsAcknowledgedAfterItsEvent (I13): while the handler runs, the
// notification is what brings the event back if the worker dies.
func TestNotificationIsAcknowledgedAfterItsEvent(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { <-let; return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		if got := s.state(); len(got.acked)+len(got.requeued) != 0 {
			s.t.Errorf("answered before the handler ended: %+v", got)
		}
		close(let)
		rig.Pass(time.Second)
		if got := s.state(); len(got.acked) != 1 || len(got.requeued) != 0 || len(got.completions) != 1 {
			s.t.Errorf("after the handler ended: %+v", got)
		}
	})
}

// TestDuplicateNotificationRunsItsEventOnce (I3, I4), within one batch.
func TestDuplicateNotificationRunsItsEventOnce(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1), s.claimed(1), s.claimed(2))
		rig.Pass(time.Second)
		got := s.state()
		if got.runs[1] != 1 || got.runs[2] != 1 || len(got.acked) != 2 {
			s.t.Errorf("%+v", got)
		}
		// It may be the same message once more, and must not end the other.
		if len(got.requeued) != 1 || got.requeued[0].after <= 0 {
			s.t.Errorf("the double was not given back for a while: %+v", got.requeued)
		}
	})
}

// TestFailedClaimReturnsItsNotifications (I2, I11), after a while.
func TestFailedClaimReturnsItsNotifications(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.claiming = func(context.Context) error { return errors.New("the database is down") }
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1), s.claimed(2))
		rig.Pass(time.Minute)
		got := s.state()
		if len(got.acked) != 0 || len(got.requeued) != 2 {
			s.t.Fatalf("%+v", got)
		}
		for _, back := range got.requeued {
			if back.after <= 0 {
				s.t.Errorf("a notification comes back after %s", back.after)
			}
		}
	})
}

// TestHangingClaimDoesNotDelayAStop: whoever stops the worker has no more
// than some seconds.
func TestHangingClaimDoesNotDelayAStop(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.claiming = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		s.notify(s.claimed(1))
		began := time.Now()
		stop()
		if took := time.Since(began); took > 5*time.Second {
			s.t.Errorf("the stop took %s", took)
		}
		if got := s.state(); len(got.acked) != 0 || len(got.requeued) != 1 {
			s.t.Errorf("the notification was not given back: %+v", got)
		}
	})
}

// TestNotifierWithEmptyAnswersMakesNoHotLoop (I11).
func TestNotifierWithEmptyAnswersMakesNoHotLoop(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		const most = 1000
		s.empty = most
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		rig.Pass(time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if pulls := most - s.empty; pulls > 50 {
			s.t.Errorf("%d pulls in a second", pulls)
		}
	})
}

// TestStopDoesNotInterruptAClaim: it may have committed, and its events would be
// locked for nothing until their locks expire.
func TestStopDoesNotInterruptAClaim(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		var cut error
		s.claiming = func(ctx context.Context) error {
			<-let
			cut = ctx.Err()
			return nil
		}
		began := time.Now()
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		s.notify(s.claimed(1))
		stopped := make(chan struct{})
		go func() { defer close(stopped); stop() }()
		rig.Pass(500 * time.Millisecond)
		close(let)
		<-stopped
		if took := time.Since(began); took > 10*time.Second {
			s.t.Errorf("the stop took %s", took)
		}
		if cut != nil {
			s.t.Errorf("the claim was cut off: %v", cut)
		}
		if got := s.state(); len(got.completions) != 1 {
			s.t.Errorf("what was claimed was not ended: %+v", got)
		}
	})
}
