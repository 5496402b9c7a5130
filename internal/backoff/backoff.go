// Package backoff is how loops wait after failures: longer from failure to failure,
// each time with jitter, and no longer than the loop's context lasts.
package backoff

import (
	"context"
	"time"
)

// The first wait after a failure, and the longest.
const (
	Least = 100 * time.Millisecond
	Most  = 5 * time.Second
)

// Wait is the wait after failures. It is for one goroutine.
type Wait struct {
	// Next is how long the next wait lasts, give or take half of it.
	Next   time.Duration
	jitter func(time.Duration) time.Duration
}

// New makes a Wait. jitter returns a random duration below its argument.
func New(jitter func(time.Duration) time.Duration) *Wait { return &Wait{Least, jitter} }

// Reset is for after a success: the next failure is waited for as the first.
func (w *Wait) Reset() { w.Next = Least }

// Pause waits, or less when ctx ends.
func (w *Wait) Pause(ctx context.Context) {
	Sleep(ctx, w.Next/2+w.jitter(w.Next))
	w.Next = min(2*w.Next, Most)
}

// Sleep waits for the given time, or less when ctx ends.
func Sleep(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
