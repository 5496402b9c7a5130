package pubsubnotify

import (
	"math"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

// FuzzWholeSeconds holds the ack deadline that Requeue sets to the delay that it
// was given: never shorter, never 0 for what is not, a second longer at most, and
// nothing at all beyond what Pub/Sub takes.
func FuzzWholeSeconds(f *testing.F) {
	for _, d := range []int64{
		math.MinInt64, -1, 0, 1, int64(time.Second) - 1, int64(time.Second), int64(time.Second) + 1,
		int64(eventqueue.MaxRequeue) - 1, int64(eventqueue.MaxRequeue), int64(eventqueue.MaxRequeue) + 1, math.MaxInt64 - 1, math.MaxInt64,
	} {
		f.Add(d)
	}
	n := &Notifier{} // it has no connection, and nothing to send
	f.Fuzz(func(t *testing.T, delay int64) {
		after := time.Duration(delay)
		err := n.Requeue(t.Context(), nil, after)
		if (err != nil) != (after > eventqueue.MaxRequeue) {
			t.Fatalf("Requeue after %s = %v: want an error beyond %s", after, err, eventqueue.MaxRequeue)
		}
		if err != nil {
			return
		}
		deadline := time.Duration(wholeSeconds(after)) * time.Second
		if want := max(after, 0); deadline < want || deadline >= want+time.Second || deadline > eventqueue.MaxRequeue {
			t.Fatalf("a delay of %d ns becomes a deadline of %s", after, deadline)
		}
	})
}
