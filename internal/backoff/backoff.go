// Package backoff waits between the attempts of a loop that fails: longer after each
// failure, with jitter, and never beyond the end of the loop's context.
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

// Wait is the growing wait of one loop. It is not safe for concurrent use.
type Wait struct {
	// Next is the average of the next wait, which is half to one and a half times as long.
	Next   time.Duration
	jitter func(time.Duration) time.Duration
}

// New makes a Wait. jitter returns a random duration below its argument.
func New(jitter func(time.Duration) time.Duration) *Wait { return &Wait{Least, jitter} }

// Reset starts again from the first wait. Call it after a success.
func (w *Wait) Reset() { w.Next = Least }

// Pause waits, or returns earlier when ctx ends, and makes the next wait longer.
func (w *Wait) Pause(ctx context.Context) {
	Sleep(ctx, w.Next/2+w.jitter(w.Next))
	w.Next = min(2*w.Next, Most)
}

// Sleep waits for the given time, or returns earlier when ctx ends. It reports whether ctx has
// not ended; one whose deadline has come has, even if it does not say so yet.
func Sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		deadline, bounded := ctx.Deadline()
		return ctx.Err() == nil && (!bounded || time.Now().Before(deadline))
	case <-ctx.Done():
		return false
	}
}
