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

	"eventsv2/test/testenv"
)

// listenWith runs a listener until the test ends; each ring is sent to the
// channel.
func listenWith(t *testing.T, pool *pgxpool.Pool, change func(l *listener)) <-chan struct{} {
	t.Helper()
	rings := make(chan struct{}, 1000)
	l := &listener{config: pool.Config().ConnConfig, ring: func() { rings <- struct{}{} },
		hearWithin: hearTimeout, log: testenv.Logger(t)}
	change(l)
	ctx, stop := context.WithCancel(testenv.Context(t))
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return rings
}

func await(t *testing.T, what string, signals <-chan struct{}) {
	t.Helper()
	select {
	case <-signals:
	case <-testenv.Context(t).Done():
		t.Fatalf("waited in vain for %s", what)
	}
}

// TestItRingsOnceItListens is about what was committed before, of which nobody
// will tell.
func TestItRingsOnceItListens(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	var rung atomic.Bool
	rungBefore := make(chan bool, 100)
	listenWith(t, pool, func(l *listener) {
		l.ring = func() { rung.Store(true) }
		l.notify = func(ctx context.Context, text string) error {
			rungBefore <- rung.Load() // it listens now
			return n.notify(ctx, text)
		}
	})
	if !<-rungBefore {
		t.Error("it listens and has not rung")
	}
}

// TestEachPublishNotifies has one connection listen and publish: Postgres hands
// it its own NOTIFY with the answer. What waits already is notified again.
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

// TestItRingsWhileTheConnectionHangs dials a server that never answers.
func TestItRingsWhileTheConnectionHangs(t *testing.T) {
	t.Parallel()
	dialled := make(chan struct{}, 1)
	rings := listenWith(t, testenv.Pool(t), func(l *listener) {
		l.config.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialled <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	await(t, "the connection to be made", dialled)
	for range 2 {
		await(t, "a ring", rings)
	}
}

// TestAPoolThatIsBusyMakesNobodyDeaf has the word to itself sent later than it
// may take to come.
func TestAPoolThatIsBusyMakesNobodyDeaf(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	sent := make(chan error, 100)
	listenWith(t, pool, func(l *listener) {
		l.hearWithin = 2 * time.Second
		l.notify = func(ctx context.Context, text string) error {
			pause(ctx, l.hearWithin+time.Second/2)
			err := n.notify(ctx, text)
			sent <- err
			return err
		}
	})
	if err := <-sent; err != nil {
		t.Errorf("the word could not be sent any more: %v", err)
	}
}
