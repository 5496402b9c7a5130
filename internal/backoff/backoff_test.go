package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/internal/backoff"
)

// TestPausesDoubleUpToTheLongest: each is half of the average and a jitter of up to all of it; a success begins anew.
func TestPausesDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, most := range []bool{false, true} {
			wait := backoff.New(func(below time.Duration) time.Duration {
				if most {
					return below
				}
				return 0
			})
			for round := range 2 {
				average := backoff.Least
				for try := range 10 {
					want := average / 2
					if most {
						want += average
					}
					began := time.Now()
					wait.Pause(t.Context())
					if took := time.Since(began); took != want {
						t.Errorf("round %d, failure %d: waited %s, want %s", round, try, took, want)
					}
					average = min(2*average, backoff.Most)
				}
				wait.Reset()
			}
		}
	})
}

func TestSleepReportsWhetherItsContextGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deadline, sleeps time.Duration
		goesOn           bool
	}{
		"the context ends first":    {time.Second, time.Minute, false},
		"the sleep ends first":      {time.Minute, time.Second, true},
		"both end in one instant":   {time.Second, time.Second, false},
		"the context has ended":     {-time.Second, time.Second, false},
		"it has, and nothing to do": {-time.Second, 0, false},
		"a sleep of no time at all": {time.Second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 100 { // of two timers of one instant, either may be first
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
					defer cancel()
					began := time.Now()
					if got := backoff.Sleep(ctx, c.sleeps); got != c.goesOn {
						t.Fatalf("the context goes on: %t, want %t", got, c.goesOn)
					}
					if slept, want := time.Since(began), max(min(c.deadline, c.sleeps), 0); slept != want {
						t.Fatalf("it slept %v, want %v", slept, want)
					}
				})
			}
		})
	}
}
