package testenv

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"
)

// waitLimit is how long a test may wait for one thing: far longer than a loaded machine takes, and a fifth of what
// go test lets the whole package take, so that what hangs is named before all else is ended.
var waitLimit = sync.OnceValue(func() time.Duration {
	const longest = 10 * time.Minute
	if timeout := flag.Lookup("test.timeout"); timeout != nil {
		if whole := timeout.Value.(flag.Getter).Get().(time.Duration); whole > 0 {
			return min(whole/5, longest)
		}
	}
	return longest
})

// errTooLong is the cause of the end of a context that Context made.
var errTooLong = errors.New("the test waited too long")

// promised has the limits of tests that called Promised, by their names.
var promised sync.Map // of time.Duration

// Promised has a test, and its subtests, wait for no longer than ten times what the queue promises, such as the end of
// an outage, as a busy machine may be so much slower, and for a minute at least. Call it first: it counts for what is
// waited for afterwards.
func Promised(t testing.TB, within time.Duration) {
	t.Helper()
	promised.Store(t.Name(), max(10*within, time.Minute))
	t.Cleanup(func() { promised.Delete(t.Name()) })
}

// limitOf returns how long a test may wait for one thing.
func limitOf(name string) time.Duration {
	for {
		if limit, ok := promised.Load(name); ok {
			return limit.(time.Duration)
		}
		last := strings.LastIndexByte(name, '/')
		if last < 0 {
			return waitLimit()
		}
		name = name[:last] // the test that it is part of
	}
}

// Context returns a context of the test with a deadline some minutes from now (a fifth of go test's -timeout, or what
// Promised says), so that a test that waits for something that never happens fails instead of hanging; context.Cause
// says why it ended.
// Call it for each thing that is waited for: a test, and the queue of tests that run at once, may last longer.
func Context(t testing.TB) context.Context {
	t.Helper()
	limit := limitOf(t.Name())
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("%w: %v", errTooLong, limit))
	t.Cleanup(cancel)
	return ctx
}

// Logger returns a logger that writes to the test's log: warnings and worse, and
// everything under -v. What comes after the end of the test is dropped: a queue that is not closed
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

// Logf is Logf of the test.
func (l *testLog) Logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.TB.Logf(format, args...)
	}
}
