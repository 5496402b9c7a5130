package pgnotify

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/internal/trace"
	"eventsv2/test/testenv"
)

// two opens two notifiers as two processes would, on one database.
func two(t *testing.T) (*Notifier, *Notifier, *pgxpool.Pool) {
	t.Helper()
	url := testenv.DatabaseURL(t)
	var pools [2]*pgxpool.Pool
	for i := range pools {
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		pools[i] = pool
	}
	return open(t, pools[0], Config{}), open(t, pools[1], Config{}), pools[0]
}

func TestProcessesShareTheNotifications(t *testing.T) {
	t.Parallel()
	const count = 3000
	a, b, _ := two(t)
	ctx, stop := context.WithCancel(testenv.Context(t))
	defer stop()
	var mu sync.Mutex
	seen := map[eventqueue.EventID]int{}
	var pulling sync.WaitGroup
	for _, n := range []*Notifier{a, a, b, b} {
		pulling.Go(func() {
			for ctx.Err() == nil {
				deliveries, err := n.Pull(ctx, 37)
				if err != nil && ctx.Err() == nil {
					t.Errorf("Pull = %v", err)
				}
				mu.Lock()
				for _, d := range deliveries {
					seen[d.Event]++
				}
				if len(seen) == count || err != nil {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	for first := int64(1); first <= count; first += 300 {
		publish(t, a, first, first+299)
	}
	pulling.Wait()
	if context.Cause(testenv.Context(t)) != nil || len(seen) != count {
		t.Fatalf("%d of %d notifications came", len(seen), count)
	}
	for event, times := range seen {
		if times != 1 {
			t.Errorf("event %v came %d times", event, times)
		}
	}
}

func TestPublishWakesOtherProcesses(t *testing.T) {
	t.Parallel()
	a, b, pool := two(t)
	for id := int64(1); id <= 3; id++ {
		came := waitingPull(t, b)
		awaitListeners(t, pool, 1)
		publish(t, a, id, id)
		if p := <-came; p.err != nil || len(p.deliveries) != 1 || p.deliveries[0].Event != eventqueue.EventID(id) {
			t.Fatalf("pulled %+v", p)
		}
	}
	if got := one[int](t, pool, listenersSQL); got != 1 {
		t.Errorf("%d connections listen, want that of the one that pulls", got)
	}
}

func TestCloseReturnsLeasedNotifications(t *testing.T) {
	t.Parallel()
	a, b, pool := two(t)
	publish(t, a, 1, 2500)
	ctx := testenv.Context(t)
	held := pullAll(t, a, 1, 2500, false)
	ack(t, a, held[:500])
	for after, part := range map[time.Duration][]eventqueue.Delivery{
		eventqueue.MaxRequeue: held[500:1000], time.Minute: held[1000:1500], 0: held[1500:2000],
	} {
		if err := a.Requeue(ctx, part, after); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := rows(t, pool); got != 2000 {
		t.Fatalf("the table has %d notifications, want 2000", got)
	}
	back := map[eventqueue.EventID]bool{}
	for len(back) < 2000 {
		deliveries, err := b.Pull(ctx, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range deliveries {
			back[d.Event] = true
		}
	}
	for _, d := range held[:500] {
		if back[d.Event] {
			t.Errorf("event %v came back though it was acknowledged", d.Event)
		}
	}
	if _, err := a.Pull(ctx, 1); !errors.Is(err, errClosed) {
		t.Errorf("Pull after Close = %v", err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("Close again = %v", err)
	}
}

// A delay belongs to one process; when it is over, any process may get the notification.
func TestRequeuedNotificationIsForAnyProcess(t *testing.T) {
	t.Parallel()
	a, b, _ := two(t)
	publish(t, a, 1, 1)
	held := pullAll(t, a, 1, 1, false)
	came := waitingPull(t, b)
	start := time.Now()
	if err := a.Requeue(testenv.Context(t), held, 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	p := <-came
	if p.err != nil || p.deliveries[0].Event != 1 {
		t.Fatalf("pulled %+v", p)
	}
	if passed := time.Since(start); passed < 200*time.Millisecond {
		t.Errorf("it came after %v", passed)
	}
	// The ack ID of one notifier means nothing to another.
	ack(t, a, p.deliveries)
	if err := b.Requeue(testenv.Context(t), p.deliveries, 0); err != nil {
		t.Fatal(err)
	}
	pullAll(t, b, 1, 1, false)
}

func TestEventHasOneNotificationAtMost(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	both := append(notifications(1, 10), notifications(1, 10)...)
	for range 3 {
		if err := n.Publish(testenv.Context(t), both); err != nil {
			t.Fatal(err)
		}
	}
	if got := rows(t, pool); got != 10 {
		t.Errorf("the table has %d notifications, want 10", got)
	}
	held := pullAll(t, n, 1, 10, false)
	// While it is leased, the next publish adds another one.
	publish(t, n, 1, 10)
	ack(t, n, append(held, pullAll(t, n, 1, 10, false)...))
	if got := rows(t, pool); got != 0 {
		t.Errorf("the table has %d notifications, want none", got)
	}
}

func TestPublishRefusesInvalidNotification(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	n := open(t, pool, Config{})
	if err := n.Publish(testenv.Context(t), append(notifications(1, 1), notifications(0, 0)...)); err == nil {
		t.Error("Publish of event 0 = nil, want an error")
	}
	bad := notifications(1, 4)
	for i, text := range []string{"00-é", "a\x00b", "\xff", strings.Repeat("0", trace.MaxParentBytes+1)} {
		bad[i].Traceparent = text
	}
	if err := n.Publish(testenv.Context(t), bad); err != nil {
		t.Errorf("unusable trace contexts cost the notifications: %v", err)
	}
	for _, d := range pullAll(t, n, 1, 4, false) {
		if d.Traceparent != "" {
			t.Errorf("event %v has the trace context %q", d.Event, d.Traceparent)
		}
	}
	if _, err := New(nil, Config{}); err == nil {
		t.Error("New without a pool = nil, want an error")
	}
	for _, config := range []Config{{Lease: -1}, {Lease: eventqueue.MaxRequeue + 1}, {Unit: -1}} {
		if _, err := New(pool, config); err == nil {
			t.Errorf("New(%+v) = nil, want an error", config)
		}
	}
}
