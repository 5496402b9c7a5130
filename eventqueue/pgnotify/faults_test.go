package pgnotify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/migrations"
	"eventsv2/test/services"
	"eventsv2/test/testenv"
)

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(testenv.Context(t), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestListenerReconnects(t *testing.T) {
	t.Parallel()
	a, b, pool := two(t)
	for id, lost := range []string{
		`application_name LIKE '%-listen'`,
		`pid <> pg_backend_pid()`,
	} {
		id := int64(2*id + 1)
		came := waitingPull(t, b)
		awaitListeners(t, pool, 1)
		if one[int](t, pool, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND `+lost) == 0 {
			t.Fatal("no connection was ended")
		}
		publish(t, a, id, id) // whether its NOTIFY arrives or not
		p := <-came
		for p.err != nil { // a poll on a connection that was ended
			p = <-waitingPull(t, b)
		}
		if p.deliveries[0].Event != eventqueue.EventID(id) {
			t.Fatalf("pulled %+v", p)
		}
		awaitListeners(t, pool, 1)
		came = waitingPull(t, b)
		publish(t, a, id+1, id+1)
		if p := <-came; p.err != nil || p.deliveries[0].Event != eventqueue.EventID(id+1) {
			t.Fatalf("pulled %+v", p)
		}
	}
}

// TestPullsPollWhileNoNoticeArrives has the listener on one database and
// everything else on another. To the listener that is the same as a transaction
// pooler: no NOTIFY ever arrives.
func TestPullsPollWhileNoNoticeArrives(t *testing.T) {
	t.Parallel()
	pool, elsewhere := testenv.Pool(t), testenv.Pool(t)
	n := open(t, pool, Config{})
	ctx, stop := context.WithCancel(testenv.Context(t))
	listening := make(chan error, 2)
	l := &listener{config: elsewhere.Config(), notify: n.notify, wake: n.wakeup.signal, probeWithin: 100 * time.Millisecond, log: n.log,
		state: &n.wakeups, failed: n.notHeard}
	n.startOnce.Do(func() {}) // no other listener
	var running sync.WaitGroup
	running.Go(func() {
		for range 2 {
			_, err := l.listen(ctx)
			listening <- err
		}
		l.run(ctx)
	})
	t.Cleanup(func() { stop(); running.Wait() })
	for _, want := range []error{errProbeLate, errNotDelivered} {
		if err := <-listening; !errors.Is(err, want) {
			t.Fatalf("listen = %v, want %v", err, want)
		}
	}
	for id := int64(1); id <= 3; id++ {
		publish(t, n, id, id)
		pullAll(t, n, id, id, false)
	}
}

// TestFailedReturnIsRepeated renames the table for a while.
func TestFailedReturnIsRepeated(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"tried again", "returned by Close"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			a, b, pool := two(t)
			failed := make(chan struct{}, 100)
			a.log = notices(failed)
			publish(t, a, 1, 2000)
			held := pullAll(t, a, 1, 2000, false)
			exec(t, pool, `ALTER TABLE events_v2_notifications RENAME TO away`)
			if err := a.Check(testenv.Context(t)); err == nil {
				t.Error("Check = nil without the table")
			}
			if err := a.Requeue(testenv.Context(t), held, 0); err != nil {
				t.Fatal(err)
			}
			<-failed
			<-failed
			exec(t, pool, `ALTER TABLE away RENAME TO events_v2_notifications`)
			if err := a.Check(testenv.Context(t)); err != nil {
				t.Errorf("Check = %v", err)
			}
			if how == "returned by Close" {
				if err := a.Close(); err != nil {
					t.Fatal(err)
				}
			}
			pullAll(t, b, 1, 2000, true)
		})
	}
}

// TestLateCommitIsFound has a transaction take its places first and commit
// last, behind a backlog that was drained meanwhile.
func TestLateCommitIsFound(t *testing.T) {
	t.Parallel()
	a, b, pool := two(t)
	ctx := testenv.Context(t)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // nothing after the commit
	if _, err := tx.Exec(ctx, insertSQL, []int64{5000}, [][16]byte{{1}}, []*string(nil), channel); err != nil {
		t.Fatal(err)
	}
	publish(t, a, 1, 4000)
	ack(t, b, pullAll(t, b, 1, 4000, false))
	came := waitingPull(t, b)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if p := <-came; p.err != nil || p.deliveries[0].Event != 5000 {
		t.Fatalf("pulled %+v", p)
	}
}

// TestPostgresGoesAwayAndReturns kills the server, which loses the table. Leased
// notifications are in memory and are inserted again.
func TestPostgresGoesAwayAndReturns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server, err := services.Postgres(ctx, services.Private(), services.Durable())
	if err != nil || server.PID == 0 {
		testenv.Missing(t, "a crash of Postgres: %v", err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	if _, err := migrations.Up(ctx, server.URL); err != nil {
		t.Fatal(err)
	}
	pool, err := pgstore.Open(ctx, server.URL, "pgnotify-test", 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	failed := make(chan struct{}, 100)
	n := open(t, pool, Config{Logger: notices(failed)})
	publish(t, n, 1, 3000)
	held := make([]eventqueue.Delivery, 0, 1000)
	for len(held) < 1000 {
		deliveries, err := n.Pull(ctx, 1000-len(held))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, deliveries...)
	}
	awaitListeners(t, pool, 1)
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	<-failed // the listener reports that it has lost its connection
	if err := n.Requeue(ctx, held, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	ack(t, n, pullAll(t, n, 1, 1000, true))
	// Places have started again, below all marks.
	publish(t, n, 4001, 6000)
	ack(t, n, pullAll(t, n, 4001, 6000, true))
	if got := rows(t, pool); got != 0 {
		t.Errorf("the table has %d notifications, want none", got)
	}
}
