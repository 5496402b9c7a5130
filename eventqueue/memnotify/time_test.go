package memnotify_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
)

// In a bubble of synctest the clock does not advance until all goroutines wait, so
// these tests can compare exact times.

func TestLeaseExpiresOnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnotify.New(memnotify.Config{})
		publish(t, n, 1)
		start := time.Now()
		first := pullOne(t, n)
		again := pullOne(t, n)
		if passed := time.Since(start); passed != memnotify.DefaultLease {
			t.Errorf("it came again after %v, want %v", passed, memnotify.DefaultLease)
		}
		if first.AckID == again.AckID {
			t.Error("both deliveries have one ack ID")
		}
	})
}

func TestRequeueIsRoundedUpToTheUnit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ unit, after, want time.Duration }{
		{time.Second, 0, 0},
		{time.Second, -1, 0},
		{time.Second, 1, time.Second},
		{time.Second, 900 * time.Millisecond, time.Second},
		{time.Second, time.Second, time.Second},
		{time.Second, time.Second + 1, 2 * time.Second},
		{time.Second, eventqueue.MaxRequeue, eventqueue.MaxRequeue},
		{0, 1, 1},
		{0, 1500 * time.Millisecond, 1500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := memnotify.New(memnotify.Config{Unit: c.unit})
			publish(t, n, 1)
			delivery := pullOne(t, n)
			start := time.Now()
			if err := n.Requeue(t.Context(), []eventqueue.Delivery{delivery}, c.after); err != nil {
				t.Fatalf("Requeue(%v) = %v, want nil", c.after, err)
			}
			pullOne(t, n)
			if passed := time.Since(start); passed != c.want {
				t.Errorf("with unit %v, Requeue(%v) brought it back after %v, want %v", c.unit, c.after, passed, c.want)
			}
		})
	}
}

func TestEarlierDelayEndsALongerWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnotify.New(memnotify.Config{})
		publish(t, n, 1, 2)
		late, soon := pullOne(t, n), pullOne(t, n)
		requeue(t, n, late, time.Minute)
		start := time.Now()
		var pullers sync.WaitGroup
		times := make([]time.Duration, 3) // by event
		for range 2 {
			pullers.Go(func() {
				d := pullOne(t, n)
				times[d.Event] = time.Since(start)
			})
		}
		synctest.Wait() // both wait for the minute to pass
		requeue(t, n, soon, time.Second)
		pullers.Wait()
		if times[2] != time.Second || times[1] != time.Minute {
			t.Errorf("they came back after %v and %v, want %v and %v", times[2], times[1], time.Second, time.Minute)
		}
	})
}

// A waiter that was woken and cancelled at the same time must wake another one.
func TestCancelledWaiterWakesAnother(t *testing.T) {
	t.Parallel()
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			n := memnotify.New(memnotify.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			var pullers sync.WaitGroup
			for range 5 {
				pullers.Go(func() {
					if got, err := n.Pull(ctx, 1); err == nil {
						requeueAll(t, n, got, 0)
					}
				})
			}
			synctest.Wait()
			pullers.Go(func() { pullOne(t, n) })
			synctest.Wait()
			go publish(t, n, 1)
			cancel()
			pullers.Wait() // a lost wake-up is a deadlock, which the bubble reports
		})
	}
}

func TestIdleNotifierOnlyWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnotify.New(memnotify.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if _, err := n.Pull(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pull = %v, want context.DeadlineExceeded", err)
		}
	})
}

func TestLateAckCountsUntilRedelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := memnotify.New(memnotify.Config{})
		publish(t, n, 1, 2)
		both := []eventqueue.Delivery{pullOne(t, n), pullOne(t, n)}
		<-time.After(2 * memnotify.DefaultLease) // by the bubble's clock
		if ready := n.Ready(); ready != 2 {
			t.Fatalf("Ready = %d after the leases have ended, want 2", ready)
		}
		ack(t, n, both[0])
		requeue(t, n, both[1], time.Minute)
		if ready, left := n.Ready(), n.Len(); ready != 0 || left != 1 {
			t.Errorf("Ready, Len = %d, %d after one ack and one requeue, want 0, 1", ready, left)
		}
		start := time.Now()
		if d := pullOne(t, n); d.Event != both[1].Event || time.Since(start) != time.Minute {
			t.Errorf("event %v came after %v, want %v after a minute", d.Event, time.Since(start), both[1].Event)
		}
	})
}
