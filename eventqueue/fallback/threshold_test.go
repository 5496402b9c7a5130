package fallback_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
)

// unsteady is a notifier whose pulls take a second, and fail as a schedule says; its check succeeds.
type unsteady struct {
	generous
	began time.Time
	fails func(second int) bool
}

func (u *unsteady) Check(context.Context) error { return nil }

func (u *unsteady) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if u.fails(int(time.Since(u.began) / time.Second)) {
		return nil, errors.New("a hiccup")
	}
	return nil, nil
}

// TestFallbackBeginsAfterFailuresThatLast: neither one failed pull nor several with successes between them are an outage.
func TestFallbackBeginsAfterFailuresThatLast(t *testing.T) {
	t.Parallel()
	const after = 10 * time.Second
	for name, c := range map[string]struct {
		fails func(second int) bool
		first time.Duration // the earliest instant at which it may count as down; 0: it never does
	}{
		"one failure":                     {func(s int) bool { return s == 5 }, 0},
		"failures for less than the time": {func(s int) bool { return s >= 5 && s < 13 }, 0},
		"every other pull":                {func(s int) bool { return s%2 == 0 }, 0},
		"failures for the time":           {func(s int) bool { return s >= 5 }, 5*time.Second + after},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := &unsteady{began: time.Now(), fails: c.fails}
				r, err := fallback.New(u, never{}, fallback.Config{After: after})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = r.Attend(ctx) }) // nil when it is stopped
				running.Go(func() {
					for ctx.Err() == nil {
						_, _ = r.Pull(ctx, 1) // the failures are the notifier's
					}
				})
				defer running.Wait()
				defer stop()
				down := time.Duration(0)
				for at := time.Duration(0); at < time.Minute && down == 0; at += 250 * time.Millisecond {
					<-time.After(250 * time.Millisecond)
					synctest.Wait()
					if r.Failure() != nil {
						down = time.Since(u.began)
					}
				}
				if (down == 0) != (c.first == 0) || down < c.first || c.first > 0 && down > c.first+after/2 {
					t.Errorf("it is down after %s, and may be from %s on", down, c.first)
				}
			})
		})
	}
}
