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

// TestSleepEndsWithItsContext, and says so.
func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if !backoff.Sleep(t.Context(), time.Second) {
			t.Error("a wait to its end is reported as cut off")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if backoff.Sleep(ctx, time.Hour) || time.Since(began) != time.Second {
			t.Errorf("a wait that was cut off after a second took %s, or is reported as whole", time.Since(began))
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		for range 100 {
			if backoff.Sleep(canceled, 0) {
				t.Fatal("a context that had ended before is not reported")
			}
		}
	})
}
