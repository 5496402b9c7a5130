package notifytest

import "testing"

// Run runs the suite as subtests of t. It calls open once for each case, from the
// goroutine of that case.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	ids := &lastID{}
	for _, c := range []struct {
		name string
		run  func(s *session, ids *lastID)
	}{
		{"a published notification is pulled, and deleted once acknowledged", ackedIsDeleted},
		{"a full batch is delivered whole", fullBatch},
		{"a batch over the limit is refused", overfullBatch},
		{"pull respects max", pullRespectsMax},
		{"pull of nothing is refused", pullOfNothing},
		{"two pullers share without overlap", twoPullers},
		{"a pull that waits is woken by a publish", waitingPull},
		{"traceparent is carried", traceparent},
		{"slices are not retained", slicesNotRetained},
		{"requeue by 0 is delivered again at once", requeueAtOnce},
		{"requeue by less than 0 is delivered again at once", requeuePast},
		{"requeue is delivered again, and not before its delay", requeueDelayed},
		{"requeue rounds up", requeueRoundsUp},
		{"requeue beyond the longest delay is refused", requeueTooLong},
		{"requeue extends a lease", requeueExtends},
		{"an ended lease has the notification delivered again", leaseExpires},
		{"an ack that is late, doubled or stale is no error", staleAck},
		{"acknowledging or requeueing nothing is no error", emptyCalls},
		{"the end of ctx ends a pull", cancelledPull},
		{"a cancelled pull loses nothing for good", cancelledPullLosesNothing},
		{"a concurrent mix ends with everything acknowledged", concurrentMix},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newSession(t, open(t)), ids)
		})
	}
}
