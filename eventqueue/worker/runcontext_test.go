package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
)

func newRunContext(parent context.Context) *runContext {
	return &runContext{parent: parent, deadline: time.Now().Add(time.Minute)}
}

// expectEnded checks that a context has ended, and why.
func expectEnded(ctx context.Context, t *testing.T, err, cause error) {
	t.Helper()
	select {
	case <-ctx.Done():
	default:
		t.Error("Done is open")
	}
	if got := ctx.Err(); !errors.Is(got, err) {
		t.Errorf("Err is %v, want %v", got, err)
	}
	if got := context.Cause(ctx); !errors.Is(got, cause) {
		t.Errorf("the cause is %v, want %v", got, cause)
	}
}

func expectAlive(ctx context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-ctx.Done():
		t.Error("Done is closed")
	default:
	}
	if err := ctx.Err(); err != nil {
		t.Errorf("Err is %v", err)
	}
	if cause := context.Cause(ctx); cause != nil {
		t.Errorf("the cause is %v", cause)
	}
}

func TestRunContextHasItsParentsValues(t *testing.T) {
	t.Parallel()
	type key struct{}
	c := newRunContext(context.WithValue(t.Context(), key{}, "value"))
	defer c.release()
	if deadline, ok := c.Deadline(); !ok || !deadline.Equal(c.deadline) {
		t.Errorf("the deadline is %s, %v", deadline, ok)
	}
	if c.made != nil {
		t.Error("it was made for its deadline")
	}
	if got := c.Value(key{}); got != "value" {
		t.Errorf("the value is %v", got)
	}
	expectAlive(c, t)
}

func TestRunContextOfEndedParentIsEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newRunContext(t.Context())
		defer c.release()
		c.end(eventqueue.ErrStopping)
		c.end(eventqueue.ErrLockLost) // the first cause counts
		if c.made != nil {
			t.Error("it was made for its end")
		}
		expectEnded(c, t, context.Canceled, eventqueue.ErrStopping)
		time.Sleep(time.Hour)
		expectEnded(c, t, context.Canceled, eventqueue.ErrStopping)
	})
}

func TestRunContextEndsWithItsParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newRunContext(t.Context())
		defer c.release()
		expectAlive(c, t)
		c.end(eventqueue.ErrLockLost)
		c.end(eventqueue.ErrStopping)
		expectEnded(c, t, context.Canceled, eventqueue.ErrLockLost)
	})
}

func TestRunContextEndsAtItsDeadline(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"made before": true, "made after": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newRunContext(t.Context())
				defer c.release()
				if early {
					expectAlive(c, t)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				expectEnded(c, t, context.DeadlineExceeded, eventqueue.ErrTimeout)
				c.end(eventqueue.ErrStopping)
				expectEnded(c, t, context.DeadlineExceeded, eventqueue.ErrTimeout)
			})
		})
	}
}

func TestDerivedContextsEndWithTheirRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]struct {
			end        func(c *runContext)
			err, cause error
		}{
			"ended":    {func(c *runContext) { c.end(eventqueue.ErrStopping) }, context.Canceled, eventqueue.ErrStopping},
			"deadline": {func(*runContext) { time.Sleep(time.Minute) }, context.DeadlineExceeded, eventqueue.ErrTimeout},
			"released": {(*runContext).release, context.Canceled, errReturned},
		} {
			c := newRunContext(t.Context())
			derived, cancel := context.WithTimeout(c, time.Hour)
			called := make(chan struct{})
			stop := context.AfterFunc(c, func() { close(called) })
			expectAlive(derived, t)
			end.end(c)
			synctest.Wait()
			expectEnded(derived, t, end.err, end.cause)
			if stop() {
				t.Errorf("%s: AfterFunc was not called", name)
			}
			<-called
			cancel()
			c.release()
		}
	})
}

// TestReleasedRunContextIsCanceled: what a handler has left behind sees the end, and no
// timer stays.
func TestReleasedRunContextIsCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, made := range map[string]bool{"made": true, "not made": false} {
			c := newRunContext(t.Context())
			if made {
				expectAlive(c, t)
			}
			c.release()
			c.release()
			if !made && c.made != nil {
				t.Errorf("%s: it was made to be released", name)
			}
			expectEnded(c, t, context.Canceled, errReturned)
		}
	})
}

// TestStopReachesAllRuns: those that are under way, and those that begin later.
func TestStopReachesAllRuns(t *testing.T) {
	t.Parallel()
	r := newRuns()
	var all []*execution
	begin := func() {
		x := &execution{ctx: runContext{parent: t.Context(), deadline: time.Now().Add(time.Hour)}}
		x.run.ID = eventqueue.EventID(len(all) + 1)
		all = append(all, x)
		r.add(x)
	}
	begin()
	begin()
	expectAlive(&all[0].ctx, t)
	r.stop(eventqueue.ErrStopping)
	begin()
	for _, x := range all {
		expectEnded(&x.ctx, t, context.Canceled, eventqueue.ErrStopping)
		x.ctx.release()
	}
}

// TestUnusedRunContextTimesOut: the worker stops after the timeout of a
// handler that does not use its context.
func TestUnusedRunContextTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newRunContext(t.Context())
		defer c.release()
		time.Sleep(2 * time.Minute)
		c.end(eventqueue.ErrStopping)
		expectEnded(c, t, context.DeadlineExceeded, eventqueue.ErrTimeout)
	})
}
