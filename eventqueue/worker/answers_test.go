package worker_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// hung is a notifier that takes notifications and hands them out, and answers neither an
// acknowledgement nor a requeue.
type hung struct{ side }

func (hung) Ack(ctx context.Context, _ []eventqueue.Delivery) error {
	<-ctx.Done()
	return ctx.Err()
}

func (h hung) Requeue(ctx context.Context, _ []eventqueue.Delivery, _ time.Duration) error {
	return h.Ack(ctx, nil)
}

// drain is how long a worker takes for events, of which half are retried after
// different waits.
func drain(t *testing.T, notifier func(side) eventqueue.Receiver, events int) time.Duration {
	t.Helper()
	store := &shelf{}
	l := newLottery(1)
	queue, err := eventqueue.New(store, l, eventqueue.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(4, 4))
	var mu sync.Mutex
	begun := map[eventqueue.EventID]bool{}
	all := make(chan struct{})
	handlers := eventqueue.NewHandlers()
	if err := handlers.Register(rig.Key, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		<-time.After(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if begun[run.ID] {
			return nil
		}
		if begun[run.ID] = true; len(begun) == events {
			close(all)
		}
		if run.ID%2 == 0 {
			return errors.New("no luck")
		}
		return nil
	}), eventqueue.Policy{Backoff: func(int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Minute + time.Duration(dice.Int64N(int64(eventqueue.MaxRequeue)))
	}}); err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(queue, store, notifier(side{l, 0}), handlers, worker.Config{Concurrency: 20, GracePeriod: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	began := time.Now()
	go func() { defer close(stopped); _ = w.Run(ctx) }()
	for range events {
		if _, err := queue.Emit(ctx, rig.Event(`1`)); err != nil {
			t.Fatal(err)
		}
	}
	<-all
	took := time.Since(began)
	rig.Pass(time.Second)
	stop := time.Now()
	cancel()
	<-stopped
	if took := time.Since(stop); took > 3*time.Second {
		t.Errorf("the stop took %s with a grace period of 1s", took)
	}
	if left := store.left(); left != events/2 {
		t.Errorf("%d events are left, want the %d that are to be retried", left, events/2)
	}
	return took
}

// TestAnswersThatHangHoldUpNothing (I19): neither claims nor ends nor the stop.
func TestAnswersThatHangHoldUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		usual := drain(t, func(s side) eventqueue.Receiver { return s }, 2000)
		if took := drain(t, func(s side) eventqueue.Receiver { return hung{s} }, 2000); took > 2*usual {
			t.Errorf("2000 events took %s, and %s with answers that hang", usual, took)
		}
	})
}

// slowly is a notifier that takes long for each request, and counts them.
type slowly struct {
	side
	requeues *int
	mu       *sync.Mutex
	shortest *time.Duration
}

func (s slowly) Requeue(_ context.Context, _ []eventqueue.Delivery, after time.Duration) error {
	<-time.After(200 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.requeues++
	*s.shortest = min(*s.shortest, after)
	return nil
}

// TestManyDelaysMakeFewRequests: two thousand different ones.
func TestManyDelaysMakeFewRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		requeues, shortest := 0, time.Hour
		var mu sync.Mutex
		drain(t, func(s side) eventqueue.Receiver { return slowly{s, &requeues, &mu, &shortest} }, 4000)
		mu.Lock()
		defer mu.Unlock()
		if requeues > 1000 || requeues == 0 {
			t.Errorf("2000 notifications were given back with %d requests", requeues)
		}
		if shortest < 48*time.Second {
			t.Errorf("one that waits for a minute comes back after %s", shortest)
		}
	})
}

// TestHangingNotifierLosesNoLock (I3): what was claimed is begun, and so its
// lock renewed, though the answers for the rest of its batch do not get through.
func TestHangingNotifierLosesNoLock(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		s.acking = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		s.handle(eventqueue.Policy{}, func(context.Context, *eventqueue.Run) error { return nil })
		stop := s.start(worker.Config{Concurrency: 10, LockTimeout: 4 * time.Second})
		defer stop()
		gone := make([]*worker.ClaimResult, 10)
		for i := range gone {
			gone[i] = &worker.ClaimResult{Event: eventqueue.Event{ID: eventqueue.EventID(100 + i)}}
		}
		// One hangs, twice as many as there are slots wait behind it, and the next
		// has no room.
		s.notify(gone[0])
		s.notify(gone...)
		s.notify(gone...)
		s.notify(gone[0], s.claimed(1))
		rig.Pass(time.Second)
		if s.state().runs[1] != 1 {
			s.t.Error("an event was claimed and not begun")
		}
	})
}
