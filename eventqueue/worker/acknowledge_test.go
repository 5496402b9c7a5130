package worker_test

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
)

// TestRejectedAcknowledgementsAreBounded: the newest are kept.
func TestRejectedAcknowledgementsAreBounded(t *testing.T) {
	t.Parallel()
	const n = 123_456
	kept := worker.MaxAnswers(n)
	if len(kept) == 0 || len(kept) > 10_000 {
		t.Fatalf("%d of %d are kept", len(kept), n)
	}
	for i, id := range kept {
		if want := eventqueue.EventID(n - len(kept) + i); id != want {
			t.Fatalf("%d of %d are kept, and number %d is %d, want %d", len(kept), n, i, id, want)
		}
	}
}

// TestRoughDelaysAreFewAndNeverEarly are few, none of them 0 that was not, and none early by a fifth.
func TestRoughDelaysAreFewAndNeverEarly(t *testing.T) {
	t.Parallel()
	groups := map[time.Duration]bool{}
	for d := time.Duration(0); d <= eventqueue.MaxRequeue; d += 7 * time.Millisecond {
		rough := worker.RoundRoughly(d)
		groups[rough] = true
		if rough*5 < d*4 || rough > eventqueue.MaxRequeue || rough > d && rough-d >= time.Second/2 {
			t.Fatalf("%s becomes %s", d, rough)
		}
	}
	if len(groups) > 42 {
		t.Errorf("%d groups", len(groups))
	}
}
