package e2e_test

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/testenv"
)

// TestHandlersHoldingThePoolLoseNoLock: in a program that is built as the documentation
// shows, and whose handlers hold all connections of its pool, locks are renewed for longer
// than they last, beside another such program that would take them over.
func TestHandlersHoldingThePoolLoseNoLock(t *testing.T) {
	t.Parallel()
	r := newRig(t, "greet")
	const lockTimeout = 10 * time.Second // which a busy machine must not use up between two heartbeats
	briefLocks := func(c *service.Config) { c.LockTimeout = lockTimeout }
	first, other := r.embed(newLines(), briefLocks), r.embed(newLines(), briefLocks)
	let := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(let) }) }
	t.Cleanup(release)
	var held atomic.Int32 // connections, by handlers and not by a claim under way
	hold := func(e *embedded) func(*eventqueue.Run) {
		return func(*eventqueue.Run) {
			conn, err := e.Pool().Acquire(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Release()
			held.Add(1)
			<-let
		}
	}
	first.run(hold(first))
	full := int(first.Pool().Config().MaxConns)
	events := make([]eventqueue.NewEvent, full)
	for i := range events {
		events[i] = event("greet", `1`)
	}
	r.emit(events...)
	testenv.Eventually(t, "the handlers hold all connections", func() bool { return int(held.Load()) == full })
	r.start("cron", map[string]string{"RELAY_INTERVAL": "1s", "RELAY_LOST_AFTER": "1s"}).await("cron started")
	other.run(hold(other))
	began := one[time.Time](r, `SELECT clock_timestamp()`)
	taken := 0
	testenv.Eventually(t, "the locks were renewed for longer than they last, or lost", func() bool {
		taken = one[int](r, `SELECT count(*)::int FROM events_v2 WHERE attempts <> 1`)
		return taken > 0 || one[bool](r, `SELECT count(*) = $1 FROM events_v2 WHERE locked_at > $2::timestamptz + $3::interval`, full, began, 2*lockTimeout)
	})
	if taken > 0 {
		t.Errorf("%d of %d locks were lost", taken, full)
	}
	release()
	r.awaitSQL("all have ended", `SELECT count(*) = 0 FROM events_v2`)
}

// TestIdleEmbeddingProgramSendsNothing to Postgres, if it has no part but the worker: what it listens for costs no
// statement.
func TestIdleEmbeddingProgramSendsNothing(t *testing.T) {
	t.Parallel()
	r, proxy := throughProxy(t)
	if _, err := r.pool.Exec(testenv.Context(t), `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT count(*) FROM pg_stat_statements`); err != nil {
		testenv.Missing(t, "what an idle program sends: the server has no pg_stat_statements: %v", err)
	}
	app := r.embed(newLines(), workerOnly)
	ran := make(chan struct{}, 1)
	app.run(func(*eventqueue.Run) { ran <- struct{}{} })
	r.emit(event("greet", `1`))
	<-ran
	r.awaitSQL("it has ended", `SELECT count(*) = 0 FROM events_v2`)
	// For a while after it has begun to listen it searches the database for what was
	// reported before, and then no more. Its checks of an empty subscription show the time.
	for range 8 {
		before, checks := r.sent(), proxy.Calls("GetSubscription")
		testenv.Eventually(t, "it has checked the subscription", func() bool { return proxy.Calls("GetSubscription") > checks })
		if after := r.sent(); maps.Equal(before, after) {
			return
		}
	}
	t.Errorf("an idle program goes on sending\n%v", r.sent())
}
