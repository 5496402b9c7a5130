package pgnotify

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"eventsv2/eventqueue"
	"eventsv2/test/testenv"
)

// open makes a Notifier that is closed when the test ends.
func open(t *testing.T, pool *pgxpool.Pool, config Config) *Notifier {
	t.Helper()
	if config.Logger == nil {
		config.Logger = testenv.Logger(t)
	}
	n, err := New(pool, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	})
	return n
}

// notifications have the ids from first to last.
func notifications(first, last int64) []eventqueue.Notification {
	made := make([]eventqueue.Notification, 0, last-first+1)
	for id := first; id <= last; id++ {
		made = append(made, eventqueue.Notification{Event: eventqueue.EventID(id), Canvas: eventqueue.CanvasID{1}})
	}
	return made
}

// publish publishes the ids from first to last, as many at once as may be.
func publish(t *testing.T, n *Notifier, first, last int64) {
	t.Helper()
	for ; first <= last; first += eventqueue.MaxPublish {
		if err := n.Publish(testenv.Context(t), notifications(first, min(last, first+eventqueue.MaxPublish-1))); err != nil {
			t.Fatal(err)
		}
	}
}

// pullAll pulls until every id from first to last has come, and fails on any
// other. Errors are passed over, as a worker does, when tolerant.
func pullAll(t *testing.T, n *Notifier, first, last int64, tolerant bool) []eventqueue.Delivery {
	t.Helper()
	ctx := testenv.Context(t)
	missing := map[eventqueue.EventID]bool{}
	for id := first; id <= last; id++ {
		missing[eventqueue.EventID(id)] = true
	}
	var all []eventqueue.Delivery
	for len(missing) > 0 {
		deliveries, err := n.Pull(ctx, eventqueue.MaxPublish)
		if err != nil && (!tolerant || ctx.Err() != nil) {
			t.Fatalf("Pull = %v with %d notifications missing", err, len(missing))
		}
		for _, d := range deliveries {
			if !missing[d.Event] {
				t.Fatalf("event %v came, which is not among those that are missing", d.Event)
			}
			delete(missing, d.Event)
		}
		all = append(all, deliveries...)
	}
	return all
}

func ack(t *testing.T, n *Notifier, deliveries []eventqueue.Delivery) {
	t.Helper()
	if err := n.Ack(testenv.Context(t), deliveries); err != nil {
		t.Fatal(err)
	}
}

// pulled is the result of a pull.
type pulled struct {
	deliveries []eventqueue.Delivery
	err        error
}

// waitingPull starts to pull in the background; the channel delivers its result. The pull
// ends with the test.
func waitingPull(t *testing.T, n *Notifier) <-chan pulled {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	came := make(chan pulled, 1)
	var pulling sync.WaitGroup
	pulling.Go(func() {
		deliveries, err := n.Pull(ctx, 100)
		came <- pulled{deliveries, err}
	})
	t.Cleanup(func() { stop(); pulling.Wait() })
	return came
}

// rows is how many notifications the table has.
func rows(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return one[int](t, pool, `SELECT count(*) FROM events_v2_notifications`)
}

func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := pool.QueryRow(testenv.Context(t), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

const listenersSQL = `
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE '%-listen' AND state = 'idle'`

// awaitListeners waits until so many connections listen, by their last statements.
func awaitListeners(t *testing.T, pool *pgxpool.Pool, count int) {
	t.Helper()
	testenv.Eventually(t, "the connections listen", func() bool {
		return one[int](t, pool, listenersSQL+` AND (query LIKE 'LISTEN %' OR query LIKE '%pg_listening_channels%')`) == count
	})
}

// counter counts the statements of a pool, by its own account.
type counter struct {
	mu    sync.Mutex
	count int
}

// TraceQueryStart implements pgx.QueryTracer.
func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *counter) statements() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// countedPool is a pool on a database whose statements, and those of the
// connections that listen, are counted.
func countedPool(t *testing.T) (*pgxpool.Pool, *counter) {
	t.Helper()
	config, err := pgxpool.ParseConfig(testenv.DatabaseURL(t))
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	config.ConnConfig.Tracer = c
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, c
}

// quietFor waits until a stretch of time has passed without a statement.
func quietFor(t *testing.T, c *counter, stretch time.Duration) {
	t.Helper()
	testenv.Eventually(t, "no statement is sent for "+stretch.String(), func() bool {
		before := c.statements()
		timer := time.NewTimer(stretch)
		<-timer.C
		return c.statements() == before
	})
}

// notices is a logger that sends for each warning.
func notices(to chan<- struct{}) *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(signal(to)), zap.WarnLevel))
}

// signal is a writer that only reports that it was written to.
type signal chan<- struct{}

func (s signal) Write(line []byte) (int, error) {
	select {
	case s <- struct{}{}:
	default:
	}
	return len(line), nil
}
