package testenv

import (
	"context"
	"testing"
	"time"
)

// pollInterval is short against anything that a test waits for, and long against
// a query.
const pollInterval = 20 * time.Millisecond

// Eventually waits until f returns true, and fails the test after as long as Context
// lets it wait. It is for what sends no signal, such as the state of
// another process.
func Eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx := Context(t)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !f() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s: %v", what, context.Cause(ctx))
		}
	}
}
