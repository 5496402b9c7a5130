package pgnotify

import (
	"testing"

	"eventsv2/test/testenv"
)

// TestFailedPollIsRepeated: the only wake-up is the one of the failed poll.
func TestFailedPollIsRepeated(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	n.startOnce.Do(func() {}) // no listener
	publish(t, n, 1, 10)
	exec(t, pool, `ALTER TABLE events_v2_notifications RENAME TO away`)
	n.wakeup.signal()
	if deliveries, err := n.Pull(testenv.Context(t), 10); err == nil {
		t.Fatalf("pulled %+v without the table", deliveries)
	}
	if len(n.wakeup) == 0 {
		t.Fatal("no pull polls again after a poll that failed")
	}
	exec(t, pool, `ALTER TABLE away RENAME TO events_v2_notifications`)
	ack(t, n, pullAll(t, n, 1, 10, false))
}

// TestLockedNotificationIsSkipped locks a notification in a transaction that stays open.
func TestLockedNotificationIsSkipped(t *testing.T) {
	t.Parallel()
	ctx := testenv.Context(t)
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	publish(t, n, 1, 10)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing after the other one
	if _, err := tx.Exec(ctx, `SELECT FROM events_v2_notifications WHERE event_id = 1 FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	ack(t, n, pullAll(t, n, 2, 10, false))
	came := waitingPull(t, n)
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	publish(t, n, 1, 1) // it is in the table already; this only wakes the pull
	if p := <-came; p.err != nil || p.deliveries[0].Event != 1 {
		t.Fatalf("pulled %+v", p)
	}
}
