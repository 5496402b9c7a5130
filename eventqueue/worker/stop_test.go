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
	"eventsv2/test/testenv"
)

func TestStopLetsRunningHandlersComplete(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	running, let := make(chan struct{}), make(chan struct{})
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		close(running)
		<-let
		return ctx.Err()
	}, rig.Quick())
	stop := r.Start(worker.Config{GracePeriod: time.Hour})
	r.Emit(r.Event(`1`))
	<-running
	go close(let)
	stop()
	if n, m := r.Outcomes.Count(machine.ExecutesToCompletion), r.Waiting(); n != 1 || m != 0 {
		t.Errorf("%d completed, %d left; want 1 and 0", n, m)
	}
}

// TestStopReturnsUnstartedEvents has one handler that heeds its context and one that
// does not: both events go back unharmed, and at once.
func TestStopReturnsUnstartedEvents(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	running, let := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(let) })
	r.Handle(func(ctx context.Context, run *eventqueue.Run) error {
		running <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), eventqueue.ErrStopping) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		if string(run.Value) == `"deaf"` {
			<-let
		}
		return ctx.Err()
	}, rig.Quick())
	stop := r.Start(worker.Config{GracePeriod: -1})
	r.Emit(r.Event(`"deaf"`), r.Event(`"polite"`))
	<-running
	<-running
	stop()
	if n := rig.One[int](r, `SELECT count(*) FROM events_v2 WHERE locked_at IS NULL AND retries = 0`); n != 2 {
		t.Errorf("%d events went back unharmed, want 2", n)
	}
	if n := r.Notified(); n != 2 {
		t.Errorf("the notifications of %d events are back, want 2", n)
	}
}

func TestLongRunKeepsItsLock(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	running, let := make(chan struct{}, 9), make(chan struct{})
	r.Handle(func(context.Context, *eventqueue.Run) error {
		running <- struct{}{}
		<-let
		return nil
	}, rig.Quick())
	// On a busy machine a heartbeat may take seconds.
	config := worker.Config{LockTimeout: 10 * time.Second, Heartbeat: 100 * time.Millisecond, Lease: time.Second}
	r.Start(config)
	r.Start(config)
	id := r.Emit(r.Event(`1`))[0]
	<-running
	first := rig.One[time.Time](r, `SELECT locked_at FROM events_v2 WHERE id = $1`, id)
	// Renewed for longer than the lock timeout, while other workers try to claim the event.
	testenv.Eventually(t, "the lock was renewed for longer than its timeout", func() bool {
		return rig.One[time.Time](r, `SELECT locked_at FROM events_v2 WHERE id = $1`, id).Sub(first) > config.LockTimeout+time.Second
	})
	close(let)
	r.Outcomes.Await(t, machine.ExecutesToCompletion, 1)
	if n := r.Outcomes.Count(machine.Claimed); n != 1 {
		t.Errorf("the event was claimed %d times", n)
	}
}

func TestLostLockEndsTheRun(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	running, cause := make(chan struct{}), make(chan error, 1)
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}, rig.Quick())
	r.Start(worker.Config{LockTimeout: time.Minute, Heartbeat: 20 * time.Millisecond})
	r.Emit(r.Event(`1`))
	<-running
	r.Exec(`UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`)
	if err := <-cause; !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("the cause is %v", err)
	}
	r.Outcomes.Await(t, machine.LockLost, 1)
}

func TestTimeoutIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	r := rig.New(t)
	policy := rig.Quick()
	policy.Timeout = 20 * time.Millisecond
	policy.MaxRetries = new(int)
	r.Handle(func(ctx context.Context, _ *eventqueue.Run) error {
		<-ctx.Done()
		return ctx.Err()
	}, policy)
	r.Start(worker.Config{})
	r.Emit(r.Event(`1`))
	r.Outcomes.Await(t, machine.RetryTooMany, 1)
	if got := rig.One[string](r, `SELECT last_error FROM event_log`); got != "the handler's timeout has passed\ncontext deadline exceeded" {
		t.Errorf("event_log says %q", got)
	}
}
