package testenv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// testLimit is how long a test may wait for anything. Only what never happens takes so
// long, however loaded the machine is.
const testLimit = 12 * time.Minute

// errTooLong is the cause of the end of a context that Context made.
var errTooLong = errors.New("the test waited too long")

// Context returns the test's own context with a deadline twelve minutes from now,
// so that a test that waits for something that never happens fails instead of
// hanging: everything that heeds the context returns, context.Cause says why,
// and the test fails even if it ignores that.
func Context(t testing.TB) context.Context {
	t.Helper()
	return contextWithin(t, testLimit)
}

func contextWithin(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("%w: %v", errTooLong, limit))
	t.Cleanup(func() {
		if cause := context.Cause(ctx); errors.Is(cause, errTooLong) {
			t.Errorf("%v: something that it waits for has not happened", cause)
		}
		cancel()
	})
	return ctx
}

// Logger returns a logger that writes to the test's log: warnings and worse, and
// everything under -v. What comes after the end of the test is dropped: a queue that nobody closes
// hands in its counts by itself.
func Logger(t testing.TB) *zap.Logger {
	t.Helper()
	level := zap.WarnLevel
	if testing.Verbose() {
		level = zap.DebugLevel
	}
	log := &testLog{TB: t}
	t.Cleanup(log.end)
	return zaptest.NewLogger(log, zaptest.Level(level))
}

// testLog is the log of a test until the test ends; then the log of package testing panics.
type testLog struct {
	testing.TB
	mu    sync.Mutex
	ended bool
}

func (l *testLog) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// Logf is that of the test.
func (l *testLog) Logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.TB.Logf(format, args...)
	}
}
