package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// TestRunDecidesTheNextState (I9): by the failures that the row counts, not by how often
// it was claimed or delivered.
func TestRunDecidesTheNextState(t *testing.T) {
	t.Parallel()
	no := errors.New("no luck")
	for _, c := range []struct {
		name    string
		retries int
		snoozes int // in a row
		attempt int32
		expired bool // the claim took over an expired lock
		handler func() error
		label   machine.Label
		runs    int
	}{
		{"completed", 0, 0, 1, false, func() error { return nil }, machine.ExecutesToCompletion, 1},
		{"failed once", 0, 0, 1, false, func() error { return no }, machine.RetryAllowed, 1},
		{"failed once after many snoozes", 0, 0, 90, false, func() error { return no }, machine.RetryAllowed, 1},
		{"failed for the second time", 1, 0, 2, false, func() error { return no }, machine.RetryAllowed, 1},
		{"failed once too often", 2, 0, 3, false, func() error { return no }, machine.RetryTooMany, 1},
		{"panicked", 0, 0, 1, false, func() error { panic("boom") }, machine.RetryAllowed, 1},
		{"failed for good", 0, 0, 1, false, func() error { return eventqueue.Permanent(no) }, machine.FailedForGood, 1},
		{"snoozed after many failures", 2, 0, 9, false, func() error { return eventqueue.Snooze(time.Second) }, machine.Snoozed, 1},
		{"taken over and completed", 2, 0, 3, true, func() error { return nil }, machine.ExecutesToCompletion, 1},
		{"taken over once too often", 3, 0, 4, true, func() error { return nil }, machine.RetryTooMany, 0},
		{"snoozed once more", 0, 99, 100, false, func() error { return eventqueue.Snooze(time.Second) }, machine.Snoozed, 1},
		{"snoozed once too often", 0, 100, 101, false, func() error { return eventqueue.Snooze(time.Second) }, machine.RetryAllowed, 1},
		{"snoozed once too often, after failures", 2, 100, 101, false, func() error { return eventqueue.Snooze(time.Second) }, machine.RetryTooMany, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return c.handler() })
				stop := s.start(worker.Config{})
				defer stop()
				f := s.claimed(1)
				f.Event.Retries, f.Snoozes, f.Attempt = c.retries, c.snoozes, c.attempt
				if c.expired {
					f.Facts.Lock, f.LostRun = machine.LockStale, true
				}
				s.notify(f)
				rig.Pass(time.Second)
				got := s.state()
				if len(got.completions) != 1 || got.completions[0].Label != c.label || got.completions[0].Attempt != c.attempt || got.runs[1] != c.runs {
					s.t.Errorf("%+v, want %s and %d runs", got, c.label, c.runs)
				}
			})
		})
	}
}

// TestOnlyALostRunEndsAnEventUnrun (I18): one that stands in an ordering group and has more failures
// than its policy allows, as when the policy has been changed, is run once more like any
// other; and what is written of one that has lost its last run says so.
func TestOnlyALostRunEndsAnEventUnrun(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		stop := s.start(worker.Config{})
		defer stop()
		failed, lost := s.claimed(1), s.claimed(2)
		for _, f := range []*worker.ClaimResult{failed, lost} {
			f.Event.Retries, f.Attempt, f.Grouped = 3, 9, true
		}
		lost.LostRun = true
		s.notify(failed, lost)
		rig.Pass(time.Second)
		got := s.state()
		if len(got.completions) != 2 || got.runs[1] != 1 || got.runs[2] != 0 {
			s.t.Fatalf("%+v", got)
		}
		for _, end := range got.completions {
			want := "no luck"
			if end.Event == 2 {
				want = "the event died alone: the lock expired during the last run that was allowed, and no other suspect ran beside it; its worker died, hung, or lost the database"
			}
			if end.Label != machine.RetryTooMany || end.LastError != want {
				s.t.Errorf("%+v, want %q", end, want)
			}
		}
	})
}

// TestSnoozesGrow: whoever always asks to be run again at once is run again ever more
// seldom.
func TestSnoozesGrow(t *testing.T) {
	t.Parallel()
	none, most := 0, eventqueue.MostSnoozes
	for _, c := range []struct {
		policy  eventqueue.Policy
		snoozes int
		asks    time.Duration
		want    time.Duration
		label   machine.Label
	}{
		{eventqueue.Policy{}, 0, 0, time.Second, machine.Snoozed},
		{eventqueue.Policy{}, 0, -time.Hour, time.Second, machine.Snoozed},
		{eventqueue.Policy{}, 1, time.Millisecond, 2 * time.Second, machine.Snoozed},
		{eventqueue.Policy{}, 99, 0, time.Minute, machine.Snoozed},
		{eventqueue.Policy{}, 99, time.Hour, time.Hour, machine.Snoozed},
		{eventqueue.Policy{MinSnooze: time.Minute, MaxSnoozes: &most}, eventqueue.MostSnoozes - 1, 0, time.Hour, machine.Snoozed},
		{eventqueue.Policy{MinSnooze: time.Millisecond}, 9, 0, 10 * time.Millisecond, machine.Snoozed},
		{eventqueue.Policy{MaxSnoozes: &none, Backoff: func(int) time.Duration { return time.Second }}, 0, time.Hour, time.Second, machine.RetryAllowed},
	} {
		inVirtualTime(t, func(s *script) {
			s.handle(c.policy, func(context.Context, *eventqueue.Run) error { return eventqueue.Snooze(c.asks) })
			stop := s.start(worker.Config{})
			defer stop()
			f := s.claimed(1)
			f.Snoozes = c.snoozes
			s.notify(f)
			rig.Pass(time.Second)
			if got := s.state(); len(got.completions) != 1 || got.completions[0].Delay != c.want || got.completions[0].Label != c.label {
				s.t.Errorf("snooze %d, for %s: %+v, want %s after %s", c.snoozes+1, c.asks, got.completions, c.label, c.want)
			}
		})
	}
}

// TestLongBackoffIsLeftToTheRelay (I11): the notification is dropped, whatever the
// notifier could carry.
func TestLongBackoffIsLeftToTheRelay(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.handle(eventqueue.Policy{Backoff: func(int) time.Duration { return time.Hour }},
			func(context.Context, *eventqueue.Run) error { return errors.New("no luck") })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		if got := s.state(); len(got.completions) != 1 || got.completions[0].Delay != time.Hour || len(got.acked) != 1 {
			s.t.Errorf("%+v", got)
		}
	})
}

// TestOneRefusedEndSpoilsNoOther (I15).
func TestOneRefusedEndSpoilsNoOther(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.refuse = func(completions []worker.Completion) error {
			for _, end := range completions {
				if end.Event == 3 {
					return &pgconn.PgError{Code: "23514"}
				}
			}
			return nil
		}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1), s.claimed(2), s.claimed(3), s.claimed(4), s.claimed(5))
		rig.Pass(time.Minute)
		got := s.state()
		if len(got.completions) != 4 || len(got.acked) != 4 || len(got.requeued) != 1 {
			s.t.Errorf("%+v", got)
		}
	})
}

// TestLockedRowDelaysNoOtherCompletion (I15) that comes after it.
func TestLockedRowDelaysNoOtherCompletion(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.busy = map[eventqueue.EventID]int{1: 1000}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		s.notify(s.claimed(2))
		rig.Pass(time.Second)
		if got := s.state(); len(got.completions) != 1 || got.completions[0].Event != 2 {
			s.t.Errorf("while the row is busy: %+v", got)
		}
	})
}

// TestCompletionOfALockedRowIsWrittenLater (I1).
func TestCompletionOfALockedRowIsWrittenLater(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.busy = map[eventqueue.EventID]int{1: 1000}
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1), s.claimed(2))
		rig.Pass(time.Second)
		if got := s.state(); len(got.completions) != 1 || got.completions[0].Event != 2 || len(got.acked) != 1 {
			s.t.Errorf("while the row is busy: %+v", got)
		}
		s.mu.Lock()
		s.busy[1] = 0
		s.mu.Unlock()
		rig.Pass(time.Minute)
		if got := s.state(); len(got.completions) != 2 || len(got.acked) != 2 || got.runs[1] != 1 {
			s.t.Errorf("after it: %+v", got)
		}
	})
}

// TestStopUsesNoAttempt (I9) of a handler that heeds its context, and of one
// that does not.
func TestStopUsesNoAttempt(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{Timeout: time.Hour}, func(ctx context.Context, run *eventqueue.Run) error {
			if run.ID == 2 {
				<-let
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		stop := s.start(worker.Config{})
		s.notify(s.claimed(1), s.claimed(2))
		stop()
		got := s.state()
		close(let)
		if len(got.completions) != 2 || len(got.requeued) != 2 {
			s.t.Fatalf("%+v", got)
		}
		for i := range got.completions {
			if got.completions[i].Label != machine.Released || got.requeued[i].after != 0 {
				s.t.Errorf("event %s ended as %s and comes back after %s", got.completions[i].Event, got.completions[i].Label, got.requeued[i].after)
			}
		}
	})
}

// TestCompletingWithAStaleClaimFails (I5), so that the transaction is rolled
// back.
func TestCompletingWithAStaleClaimFails(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.lostEnds = true
		var inTx, inCallers error
		s.handle(eventqueue.Policy{}, func(ctx context.Context, run *eventqueue.Run) error {
			inTx = run.CompleteTx(ctx, func(context.Context, *eventqueue.Tx) error { return nil })
			inCallers = run.CompleteIn(ctx, nil)
			return nil
		})
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(time.Second)
		if !errors.Is(inTx, eventqueue.ErrLockLost) || !errors.Is(inCallers, eventqueue.ErrLockLost) {
			s.t.Errorf("CompleteTx returned %v, CompleteIn %v", inTx, inCallers)
		}
	})
}

// TestRunIsBoundedByItsTimeout (I13): a handler that heeds its context.
func TestRunIsBoundedByItsTimeout(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		let := make(chan struct{})
		s.handle(eventqueue.Policy{Timeout: 10 * time.Second}, func(ctx context.Context, _ *eventqueue.Run) error {
			select {
			case <-ctx.Done():
			case <-let:
			}
			return ctx.Err()
		})
		stop := s.start(worker.Config{})
		defer stop()
		s.notify(s.claimed(1))
		rig.Pass(20 * time.Second) // before its lock would be given up
		got := s.state()
		close(let)
		if len(got.completions) != 1 || got.completions[0].Label != machine.RetryAllowed {
			s.t.Errorf("%+v", got)
		}
	})
}
