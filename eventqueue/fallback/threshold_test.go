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
	began    time.Time
	fails    func(second int) bool
	delivers bool
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
	if u.delivers {
		return make([]eventqueue.Delivery, 1), nil
	}
	return nil, nil
}

// TestFallbackBeginsAfterFailuresThatLast: neither one failed pull nor several with successes between them are an outage.
func TestFallbackBeginsAfterFailuresThatLast(t *testing.T) {
	t.Parallel()
	const after = 10 * time.Second
	for name, c := range map[string]struct {
		fails    func(second int) bool
		first    time.Duration // the earliest instant at which it may count as down; 0: it never does
		delivers bool
	}{
		"one failure":                       {fails: func(s int) bool { return s == 5 }},
		"failures for less than the time":   {fails: func(s int) bool { return s >= 5 && s < 13 }},
		"every other pull":                  {fails: func(s int) bool { return s%2 == 0 }},
		"every other pull, with deliveries": {fails: func(s int) bool { return s%2 == 0 }, delivers: true},
		"failures for the time":             {fails: func(s int) bool { return s >= 5 }, first: 5*time.Second + after},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := &unsteady{began: time.Now(), fails: c.fails, delivers: c.delivers}
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
				for at := time.Duration(0); at < time.Minute && down > 0; at += 250 * time.Millisecond { // though its check succeeds
					<-time.After(250 * time.Millisecond)
					synctest.Wait()
					if r.Failure() == nil {
						t.Fatal("it counts as well while its pulls fail")
					}
				}
			})
		})
	}
}

// TestNotifierIsPulledSoonAfterAFailure: one hiccup delays notifications by a part of the time only after which it would be an outage.
func TestNotifierIsPulledSoonAfterAFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := &unsteady{began: time.Now(), fails: func(s int) bool { return s == 1 }, delivers: true}
		r, err := fallback.New(u, never{}, fallback.Config{After: 10 * time.Second, ProbeEvery: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Pull(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(u.began); took > 5*time.Second {
			t.Errorf("after a pull that failed within a second, the first delivery came after %s", took)
		}
	})
}

// cutOff is a notifier whose pulls or whose checks are answered by the end of their contexts only.
type cutOff struct {
	generous
	pulls bool // they are
}

func (c *cutOff) Check(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (c *cutOff) Pull(ctx context.Context, _ int) ([]eventqueue.Delivery, error) {
	if c.pulls {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

// TestStopIsNoFailureOfTheNotifier: what a stop cuts off says nothing about the notifier.
func TestStopIsNoFailureOfTheNotifier(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pulls bool
		after time.Duration
	}{
		"during a check": {false, time.Second},
		"during a pull":  {true, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, err := fallback.New(&cutOff{pulls: c.pulls}, never{}, fallback.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.after)
				defer cancel()
				_, _ = r.Pull(ctx, 1) // it was stopped
				synctest.Wait()
				if err := r.Failure(); err != nil {
					t.Errorf("the notifier is down since %v", err)
				}
			})
		})
	}
}

// counting is a store that counts the searches for lost notifications.
type counting struct {
	never
	searches int
}

func (c *counting) TakeLost(context.Context, eventqueue.EventID, int, time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	c.searches++
	return nil, 0, nil
}

// TestRepeatedSuspicionsDelayNoSearch: relays may report lost notifications again before the first search begins.
func TestRepeatedSuspicionsDelayNoSearch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{}
		r, err := fallback.New(&unsteady{began: time.Now(), fails: func(int) bool { return false }}, store, fallback.Config{
			Jitter: func(below time.Duration) time.Duration { return below - 1 },
			Listen: func(ctx context.Context, wake func(lost bool)) error {
				for {
					select {
					case <-time.After(500 * time.Millisecond):
						wake(true)
					case <-ctx.Done():
						return ctx.Err()
					}
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		var running sync.WaitGroup
		running.Go(func() { _ = r.Attend(ctx) }) // nil when it is stopped
		_, _ = r.Pull(ctx, 1)                    // until the end
		running.Wait()
		if store.searches < 20 {
			t.Errorf("%d searches in a minute", store.searches)
		}
	})
}
