package pgstore_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/test/testenv"
)

// cutConn is a connection that is cut after a commit was sent, once the test says so.
type cutConn struct {
	net.Conn
	cut  *atomic.Bool
	sent atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.cut.Load() && bytes.Contains(p, []byte("commit")) {
		c.sent.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.sent.Load() {
		return 0, io.EOF
	}
	return n, err
}

// TestUnansweredCommitIsNotified (I19), with the errors of the real driver.
func TestUnansweredCommitIsNotified(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	config := r.pool.Config()
	dial := config.ConnConfig.DialFunc
	var cut atomic.Bool
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return &cutConn{Conn: conn, cut: &cut}, err
	}
	r = r.on(pgxpool.NewWithConfig(testenv.Context(t), config))
	notifier := memnotify.New(memnotify.Config{})
	q := r.queue(notifier)
	if err := q.InTx(testenv.Context(t), func(ctx context.Context, tx *eventqueue.Tx) error {
		cut.Store(true)
		_, err := tx.Emit(ctx, event(), event())
		return err
	}); err == nil {
		t.Error("the commit was answered")
	}
	cut.Store(false)
	if err := q.Close(testenv.Context(t)); err != nil {
		t.Error(err)
	}
	if n := notifier.Stats().Published; n != 2 {
		t.Errorf("%d notifications, want 2", n)
	}
}

// TestUnansweredEmitOfABusyHandlerIsFound, though others have emitted for the handler since, and their
// events run.
func TestUnansweredEmitOfABusyHandlerIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	inserted, err := r.store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{event()}, eventqueue.NotifyModeSelf)
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at, locked_at)
		SELECT $1, 'WORKER', 'greet', '_', '1', now(), now() FROM generate_series(1, 9000)`, [16]byte(canvas))
	found, err := r.store.Unclaimed(testenv.Context(t), []eventqueue.Unanswered{{
		Scope: eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: "greet"}, Events: 1, Oldest: time.Minute,
	}})
	if err != nil || len(found) != 1 || found[0].Event != inserted[0].ID {
		t.Errorf("found %v, %v; want event %s", found, err, inserted[0].ID)
	}
}

// TestSearchForUnansweredEmitsReadsNoBacklog (I12): it touches as many pages beside a hundred
// thousand older events of the handler, and as many of others, as beside twenty thousand.
func TestSearchForUnansweredEmitsReadsNoBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t).withConns(1)
	r.exec(`ALTER TABLE events_v2 SET (autovacuum_enabled = off)`)
	fill := func(n int) {
		for _, name := range []string{"greet", "other"} {
			r.exec(`INSERT INTO events_v2 (canvas_id, module, name, modifier, value, notified_at)
				SELECT $1, 'WORKER', $2, '_', '1', now() - interval '1 h' FROM generate_series(1, $3)`, [16]byte(canvas), name, n)
		}
		r.exec(`VACUUM ANALYZE events_v2`)
	}
	search := func() (buffers int) {
		inserted, err := r.store.Insert(testenv.Context(t), nil, []eventqueue.NewEvent{event()}, eventqueue.NotifyModeSelf)
		if err != nil {
			t.Fatal(err)
		}
		before := r.buffers()
		for range 10 {
			found, err := r.store.Unclaimed(testenv.Context(t), []eventqueue.Unanswered{{
				Scope: eventqueue.Scope{Canvas: canvas, Module: "WORKER", Name: "greet"}, Events: 1, Oldest: time.Minute,
			}})
			if err != nil || len(found) == 0 || found[len(found)-1].Event != inserted[0].ID {
				t.Fatalf("found %v, %v, want event %s", found, err, inserted[0].ID)
			}
		}
		return r.buffers() - before
	}
	fill(20_000)
	few := search()
	fill(100_000)
	if many := search(); many > 2*few {
		t.Errorf("%d pages beside a backlog, and %d beside a small one", many, few)
	}
}
