package eventqueue_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
	"eventsv2/test/testenv"
)

func TestAStopLetsRunningHandlersFinish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	running, let := make(chan struct{}), make(chan struct{})
	r.handle(func(ctx context.Context, _ *eventqueue.Run) error {
		close(running)
		<-let
		return ctx.Err()
	}, quick())
	stop := r.start(eventqueue.WorkerConfig{GracePeriod: time.Hour})
	r.emit(r.event(`1`))
	<-running
	go close(let)
	stop()
	if n, m := r.outcomes.count(machine.ExecutesToCompletion), r.waiting(); n != 1 || m != 0 {
		t.Errorf("%d completed, %d left; want 1 and 0", n, m)
	}
}

// TestAStopGivesTheRestBack has one handler that heeds its context and one that
// does not: both events go back unharmed, and at once.
func TestAStopGivesTheRestBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	running, let := make(chan struct{}, 2), make(chan struct{})
	t.Cleanup(func() { close(let) })
	r.handle(func(ctx context.Context, run *eventqueue.Run) error {
		running <- struct{}{}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), eventqueue.ErrStopping) {
			t.Errorf("the cause is %v", context.Cause(ctx))
		}
		if string(run.Value) == `"deaf"` {
			<-let
		}
		return ctx.Err()
	}, quick())
	stop := r.start(eventqueue.WorkerConfig{GracePeriod: -1})
	r.emit(r.event(`"deaf"`), r.event(`"polite"`))
	<-running
	<-running
	stop()
	if n := one[int](r, `SELECT count(*) FROM events_v2 WHERE locked_at IS NULL AND retries = 0`); n != 2 {
		t.Errorf("%d events went back unharmed, want 2", n)
	}
	if n := r.notifier.Ready(); n != 2 {
		t.Errorf("%d notifications are back, want 2", n)
	}
}

func TestALongRunKeepsItsLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	running, let := make(chan struct{}, 9), make(chan struct{})
	r.handle(func(context.Context, *eventqueue.Run) error {
		running <- struct{}{}
		<-let
		return nil
	}, quick())
	config := eventqueue.WorkerConfig{LockTimeout: 2 * time.Second, Heartbeat: 100 * time.Millisecond, Lease: time.Second}
	r.start(config)
	r.start(config)
	id := r.emit(r.event(`1`))[0]
	<-running
	first := one[time.Time](r, `SELECT locked_at FROM events_v2 WHERE id = $1`, id)
	// Renewed for longer than the lock timeout, and looked at by others on the way.
	testenv.Eventually(t, "the lock was renewed for longer than its timeout", func() bool {
		return one[time.Time](r, `SELECT locked_at FROM events_v2 WHERE id = $1`, id).Sub(first) > config.LockTimeout+time.Second
	})
	close(let)
	r.outcomes.await(t, machine.ExecutesToCompletion, 1)
	if n := r.outcomes.count(machine.Claimed); n != 1 {
		t.Errorf("the event was claimed %d times", n)
	}
}

func TestALostLockEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	running, cause := make(chan struct{}), make(chan error, 1)
	r.handle(func(ctx context.Context, _ *eventqueue.Run) error {
		close(running)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	}, quick())
	r.start(eventqueue.WorkerConfig{LockTimeout: time.Minute, Heartbeat: 20 * time.Millisecond})
	r.emit(r.event(`1`))
	<-running
	r.exec(`UPDATE events_v2 SET attempts = attempts + 1, locked_at = clock_timestamp()`)
	if err := <-cause; !errors.Is(err, eventqueue.ErrLockLost) {
		t.Errorf("the cause is %v", err)
	}
	r.outcomes.await(t, machine.LockLost, 1)
}

func TestATimeoutIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	policy := quick()
	policy.Timeout = 20 * time.Millisecond
	policy.MaxRetries = new(int)
	r.handle(func(ctx context.Context, _ *eventqueue.Run) error {
		<-ctx.Done()
		return ctx.Err()
	}, policy)
	r.start(eventqueue.WorkerConfig{})
	r.emit(r.event(`1`))
	r.outcomes.await(t, machine.RetryTooMany, 1)
	if got := one[string](r, `SELECT last_error FROM event_log`); got != "the handler's timeout has passed\ncontext deadline exceeded" {
		t.Errorf("event_log says %q", got)
	}
}
