package pgnotify

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/internal/backoff"
	"eventsv2/internal/wakeups"
	"eventsv2/test/testenv"
)

// listenWith runs a listener until the test ends; each wake-up is sent to the
// channel.
func listenWith(t *testing.T, pool *pgxpool.Pool, change func(l *listener)) <-chan struct{} {
	t.Helper()
	woken := make(chan struct{}, 1000)
	l := &listener{config: pool.Config(), wake: func() { woken <- struct{}{} },
		probeWithin: probeTimeout, log: testenv.Logger(t), state: &wakeups.State{}, failed: func(error) {}}
	change(l)
	ctx, stop := context.WithCancel(testenv.Context(t))
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return woken
}

func await(t *testing.T, what string, signals <-chan struct{}) {
	t.Helper()
	select {
	case <-signals:
	case <-testenv.Context(t).Done():
		t.Fatalf("waited in vain for %s", what)
	}
}

// TestListenerWakesPullsOnceConnected is about rows that were committed before
// LISTEN, for which no NOTIFY arrives.
func TestListenerWakesPullsOnceConnected(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	var woken atomic.Bool
	wokenBefore := make(chan bool, 100)
	listenWith(t, pool, func(l *listener) {
		l.wake = func() { woken.Store(true) }
		l.notify = func(ctx context.Context, text string) error {
			wokenBefore <- woken.Load() // it listens now
			return n.notify(ctx, text)
		}
	})
	if !<-wokenBefore {
		t.Error("it listens and has woken no pull")
	}
}

// TestEachPublishNotifies has one connection listen and publish: Postgres delivers
// its own NOTIFY with the answer. A notification that is in the table already sends
// a NOTIFY again.
func TestEachPublishNotifies(t *testing.T) {
	t.Parallel()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	var came atomic.Int64
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { came.Add(1) }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	n := open(t, pool, Config{})
	exec(t, pool, "LISTEN "+channel)
	for want := int64(1); want <= 2; want++ {
		publish(t, n, 1, 10)
		exec(t, pool, `SELECT`)
		if got := came.Load(); got != want {
			t.Errorf("%d publishes have notified %d times", want, got)
		}
	}
}

// TestHangingListenerConnectionWakesPulls dials a server that never answers.
func TestHangingListenerConnectionWakesPulls(t *testing.T) {
	t.Parallel()
	dialled := make(chan struct{}, 1)
	woken := listenWith(t, testenv.Pool(t), func(l *listener) {
		l.config.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialled <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	await(t, "the connection to be made", dialled)
	for range 2 {
		await(t, "a wake-up", woken)
	}
}

// TestBusyPoolDoesNotFailTheProbe has the probe sent later than it may take to
// arrive.
func TestBusyPoolDoesNotFailTheProbe(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	sent := make(chan error, 100)
	listenWith(t, pool, func(l *listener) {
		l.probeWithin = 2 * time.Second
		l.notify = func(ctx context.Context, text string) error {
			backoff.Sleep(ctx, l.probeWithin+time.Second/2)
			err := n.notify(ctx, text)
			sent <- err
			return err
		}
	})
	if err := <-sent; err != nil {
		t.Errorf("the probe could not be sent any more: %v", err)
	}
}
