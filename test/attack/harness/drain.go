package harness

import (
	"context"
	"math"
	"time"

	"eventsv2/internal/backoff"
)

// How often the queue is asked whether it has come to rest, and how long an answer may take.
const (
	drainEvery = 500 * time.Millisecond
	drainCall  = 30 * time.Second
)

// Drain waits until nothing is left to do. It gives up when the number of events that are left has not
// fallen for a time, and after the longest time in any case. left counts them, lifts what holds them back,
// and reports whether all else is complete; when it fails it is called again, since Postgres may have
// been killed a moment ago. Drain returns how many events are left, or the last error.
func (d *Deployment) Drain(ctx context.Context, still, longest time.Duration, left func(context.Context) (events int, complete bool, err error)) (events int, err error) {
	d.Progress.Report("the load is over; waiting for the queue to come to rest")
	deadline, last := time.Now().Add(still), time.Now().Add(longest)
	for fewest := math.MaxInt; ; backoff.Sleep(ctx, drainEvery) {
		limited, cancel := context.WithTimeout(ctx, drainCall)
		n, complete, err := left(limited)
		cancel()
		switch now := time.Now(); {
		case err == nil && n == 0 && complete:
			d.Progress.Report("at rest")
			return 0, nil
		case now.After(deadline) || now.After(last):
			d.Progress.Report("not at rest: %d events are left, all else is complete: %t, error: %v", n, complete, err)
			return n, err
		case err == nil && n < fewest:
			d.Progress.Report("%d events are left", n)
			fewest, deadline = n, now.Add(still)
		}
	}
}
