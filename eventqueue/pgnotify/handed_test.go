package pgnotify

import (
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
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

// TestForwardedNotificationsAreBounded: beyond the bound they are left to the table, and what no pull takes returns to it after a lease.
func TestForwardedNotificationsAreBounded(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	n := open(t, testenv.Pool(t), Config{Lease: lease})
	for range 5 {
		n.Hand(testenv.Context(t), notifications(1, maxTake))
	}
	if ready := n.leases.readyCount(); ready != maxHanded {
		t.Errorf("%d notifications are ready, want %d", ready, maxHanded)
	}
	if due, _ := n.leases.takeDue(time.Now().Add(lease), 10*maxTake); len(due) != maxHanded {
		t.Errorf("%d notifications return after a lease, want %d", len(due), maxHanded)
	}
}

// TestEachNotificationKeepsItsTrace, also where others of its statement have none.
func TestEachNotificationKeepsItsTrace(t *testing.T) {
	t.Parallel()
	n := open(t, testenv.Pool(t), Config{})
	published := notifications(1, 4)
	traces := map[eventqueue.EventID]string{}
	for i := range published {
		if i%2 == 1 {
			published[i].Traceparent = fmt.Sprintf("00-%032x-%016x-01", i, i)
		}
		traces[published[i].Event] = published[i].Traceparent
	}
	if err := n.Publish(testenv.Context(t), published); err != nil {
		t.Fatal(err)
	}
	pulled, err := n.Pull(testenv.Context(t), 4)
	if err != nil || len(pulled) != 4 {
		t.Fatalf("pulled %+v, %v", pulled, err)
	}
	for _, d := range pulled {
		if d.Traceparent != traces[d.Event] {
			t.Errorf("event %s has the trace %q, want %q", d.Event, d.Traceparent, traces[d.Event])
		}
	}
	ack(t, n, pulled)
}
