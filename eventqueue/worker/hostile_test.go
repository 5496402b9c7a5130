package worker_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
	"eventsv2/test/testenv"
)

// nilError is an error whose Error method panics on the nil that a careless
// handler returns.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// TestPanickingHandlersStopNoOtherEvent has handlers that panic in every place that
// the worker calls, and one worker with two slots: the event of a good handler
// runs after all of them (I15).
func TestPanickingHandlersStopNoOtherEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	once := rig.Quick()
	once.MaxRetries = new(int)
	for name, h := range map[string]struct {
		run    eventqueue.HandlerFunc
		policy eventqueue.Policy
	}{
		"panics":     {func(context.Context, *eventqueue.Run) error { panic("boom") }, once},
		"typed nil":  {func(context.Context, *eventqueue.Run) error { var e *nilError; return e }, once},
		"goexit":     {func(context.Context, *eventqueue.Run) error { runtime.Goexit(); return nil }, once},
		"mad policy": {func(context.Context, *eventqueue.Run) error { return errors.New("no") }, eventqueue.Policy{Backoff: func(int) time.Duration { panic("boom") }}},
		"odd policy": {func(context.Context, *eventqueue.Run) error { return errors.New("no") }, eventqueue.Policy{Backoff: eventqueue.Exponential(-1, 1<<62)}},
	} {
		if err := r.Handlers.Register(eventqueue.HandlerKey{Module: "WORKER", Name: name, Modifier: "_"}, h.run, h.policy); err != nil {
			t.Fatal(err)
		}
		e := r.Event(`1`)
		e.Name = name
		r.Emit(e)
	}
	r.Handle(func(context.Context, *eventqueue.Run) error { return nil }, rig.Quick())
	r.Start(worker.Config{Concurrency: 2})
	r.Outcomes.Await(t, machine.RetryTooMany, 4)
	r.Outcomes.Await(t, machine.RetryAllowed, 1)
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
}

func TestBackoffIsBounded(t *testing.T) {
	t.Parallel()
	backoff := eventqueue.Exponential(10*time.Second, time.Hour)
	for n, want := range map[int]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 99: time.Hour} {
		if got := backoff(n); got < want*4/5 || got > want*6/5 {
			t.Errorf("retry %d waits %s, want about %s", n, got, want)
		}
	}
}

// TestLockedRowDelaysNoOtherEvent holds one event's row in another
// transaction: the other events of the batch end, and it ends when it is free.
func TestLockedRowDelaysNoOtherEvent(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	ctx := testenv.Context(t)
	running, let := make(chan struct{}, 5), make(chan struct{})
	r.Handle(func(context.Context, *eventqueue.Run) error {
		running <- struct{}{}
		<-let
		return nil
	}, rig.Quick())
	ids := r.Emit(r.Event(`1`), r.Event(`2`), r.Event(`3`), r.Event(`4`), r.Event(`5`))
	r.Start(worker.Config{})
	for range ids {
		<-running
	}
	tx, err := r.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2 WHERE id = $1 FOR UPDATE`, ids[2]); err != nil {
		t.Fatal(err)
	}
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 4)
	if n := r.Waiting(); n != 1 {
		t.Errorf("%d rows are left, want the locked one", n)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 5)
}

// TestEndIsWrittenToAMovedRow has the handler write its own event's row: the end is
// not where the claim had put the row, and is written all the same.
func TestEndIsWrittenToAMovedRow(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Handle(func(_ context.Context, run *eventqueue.Run) error {
		r.Exec(`UPDATE events_v2 SET notified_at = notified_at WHERE id = $1`, run.ID)
		return nil
	}, rig.Quick())
	r.Emit(r.Event(`1`))
	var tries atomic.Int32
	store := &faultyStore{Store: r.Store}
	store.finish.Store(new(func() error {
		if tries.Add(1) == 4 { // one is in vain, and none after the second: waiting for it ends here
			r.Outcomes.Add(worker.Outcome{Label: machine.ExecutesToCompletion})
		}
		return nil
	}))
	r.StartOn(store, worker.Config{LockTimeout: time.Hour, Heartbeat: time.Hour / 2, GracePeriod: -1}) // no renewal forgets the place
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := r.Waiting(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// TestSlotsAreFreedOnce has claims fail over batches with doubles: never
// more events are in hand than there are slots.
func TestSlotsAreFreedOnce(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	store := &faultyStore{Store: r.Store}
	var claims, now, most atomic.Int32
	store.claim.Store(new(func() error {
		if claims.Add(1) <= 4 {
			return errors.New("connection reset")
		}
		return nil
	}))
	let := make(chan struct{})
	r.Handle(func(context.Context, *eventqueue.Run) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		<-let
		return nil
	}, rig.Quick())
	r.Notifier.Duplicate(20)
	events := make([]eventqueue.NewEvent, 20)
	for i := range events {
		events[i] = r.Event(`1`)
	}
	r.Emit(events...)
	r.StartOn(store, worker.Config{Concurrency: 4, Lease: time.Second})
	r.Outcomes.Await(t, machine.Claimed, 4)
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, len(events))
	if n := most.Load(); n > 4 {
		t.Errorf("%d handlers ran at once with 4 slots", n)
	}
}

// TestWakeUpsDoNotStarveTheSweep wakes a relay all the time and has it find a
// lost notification all the same.
func TestWakeUpsDoNotStarveTheSweep(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	r.Notifier.Drop(1)
	r.Emit(r.Event(`"lost"`))
	ctx, cancel := context.WithCancel(testenv.Context(t))
	relay := r.Relay(maintenance.RelayConfig{Interval: 100 * time.Millisecond, LostAfter: 500 * time.Millisecond})
	done := make(chan struct{})
	go func() { defer close(done); _ = relay.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	testenv.Eventually(t, "the lost notification is published again", func() bool {
		r.Exec(`SELECT pg_notify('events_v2_pending', '')`)
		return r.Notifier.Ready() > 0
	})
}

// TestUnknownEventsAreNotMultiplied runs a worker without the handler of an event beside a
// relay that publishes often: the notifications of the event do not circulate for ever.
func TestUnknownEventsAreNotMultiplied(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	relay := r.Relay(maintenance.RelayConfig{LostAfter: 20 * time.Millisecond})
	r.Start(worker.Config{UnknownDelay: 5 * time.Millisecond})
	r.Emit(r.Event(`1`))
	for range 5 {
		testenv.Eventually(t, "the relay notifies", func() bool {
			done, err := relay.Pass(testenv.Context(t))
			return err == nil && done.Lost > 0
		})
	}
	testenv.Eventually(t, "all of them are dropped", func() bool { return r.Notifier.Len() == 0 })
	if n := rig.One[int](r, `SELECT attempts + retries FROM events_v2`); n != 0 {
		t.Errorf("an event without a handler used %d attempts", n)
	}
}
