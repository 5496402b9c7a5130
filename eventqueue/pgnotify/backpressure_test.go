package pgnotify

import (
	"context"
	"testing"
	"time"

	"eventsv2/test/testenv"
)

// TestEmptyPollsAreBounded: however often a wake-up is signalled, and the longest wait
// is short.
func TestEmptyPollsAreBounded(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Second
	b := newBackpressure()
	now := time.Unix(0, 0)
	end := now.Add(window)
	polls := 0
	for ; now.Before(end) && polls < 1_000_000; polls++ {
		wait := max(b.wait(now), 0)
		if wait > emptyPollWait {
			t.Fatalf("a poll has to wait for %s", wait)
		}
		now = now.Add(wait + time.Microsecond) // which is faster than any database
		b.record(now, 0)
	}
	if most := freeEmptyPolls + 2*freeEmptyPolls*int(window/time.Second); polls > most {
		t.Errorf("%d polls that found nothing in %s, want at most %d", polls, window, most)
	}
	for range 10 * freeEmptyPolls { // a busy process is not held back
		b.record(now, 1)
		if wait := b.wait(now); wait > 0 {
			t.Fatalf("after a poll that found something the next one waits for %s", wait)
		}
	}
	if b.record(now, 0); b.wait(now) > emptyPollWait {
		t.Errorf("after a busy time a poll waits for %s", b.wait(now))
	}
}

// TestFloodOfNoticesCostsFewStatements: a login without rights sends NOTIFY after NOTIFY. It costs
// the pulling process a bounded number of statements, and a notification that is published
// meanwhile arrives.
func TestFloodOfNoticesCostsFewStatements(t *testing.T) {
	t.Parallel()
	pool, counted := countedPool(t)
	n := open(t, pool, Config{})
	pulled := waitingPull(t, n)
	awaitListeners(t, pool, 1)
	stranger, err := pool.Acquire(testenv.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Release()
	const portions, each = 200, 50
	flood := func() time.Duration {
		began := time.Now()
		for range portions {
			for range each { // each a transaction of its own
				if _, err := stranger.Conn().PgConn().Exec(testenv.Context(t), "NOTIFY "+channel).ReadAll(); err != nil {
					t.Error(err)
					return 0
				}
			}
		}
		return time.Since(began)
	}
	before := counted.statements()
	took := flood()
	// The stranger's statements are not counted. The timer adds a few polls.
	most := freeEmptyPolls + 2*freeEmptyPolls*int(took/time.Second+1) + 10
	if polls := counted.statements() - before; polls > most {
		t.Errorf("%d notices in %s have led to %d statements, want at most %d", portions*each, took, polls, most)
	}
	flooding, stop := context.WithCancel(testenv.Context(t))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for flooding.Err() == nil {
			_, _ = stranger.Conn().PgConn().Exec(flooding, "NOTIFY "+channel).ReadAll() // it is cut off by stop
		}
	}()
	publish(t, n, 1, 1)
	if p := <-pulled; p.err != nil || len(p.deliveries) != 1 {
		t.Errorf("%d deliveries, %v", len(p.deliveries), p.err)
	}
	stop()
	<-ended
}
