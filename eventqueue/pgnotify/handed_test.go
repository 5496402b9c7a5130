package pgnotify

import (
	"testing"

	"eventsv2/test/testenv"
)

// TestForwardedNotificationIsPulledByThisProcess, of which a pull waits, and returns to the table when that ends.
func TestForwardedNotificationIsPulledByThisProcess(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n, other := open(t, pool, Config{}), open(t, pool, Config{})
	came, elsewhere := waitingPull(t, n), waitingPull(t, other)
	n.Hand(testenv.Context(t), notifications(1, 3))
	p := <-came
	if p.err != nil || len(p.deliveries) != 3 {
		t.Fatalf("pulled %+v", p)
	}
	ack(t, n, p.deliveries[:2])
	if err := n.Requeue(testenv.Context(t), p.deliveries[2:], 0); err != nil {
		t.Fatal(err)
	}
	if p := <-elsewhere; p.err != nil || len(p.deliveries) != 1 || p.deliveries[0].Event != 3 {
		t.Fatalf("another process pulled %+v", p)
	} else {
		ack(t, other, p.deliveries)
	}
}
