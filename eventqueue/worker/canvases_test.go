package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// crowd is a worker on a queue whose handlers of the busy canvas do
// not end before the test does.
type crowd struct {
	t     *testing.T
	queue *eventqueue.Queue
	reads int // for events of other canvases

	mu      sync.Mutex
	running map[eventqueue.CanvasID]int
	ended   map[eventqueue.CanvasID]int
}

// withCrowd runs a test in a bubble.
func withCrowd(t *testing.T, concurrency int, f func(c *crowd)) {
	t.Helper()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		c := &crowd{t: t, running: map[eventqueue.CanvasID]int{}, ended: map[eventqueue.CanvasID]int{}}
		store := rig.Faulty(pgstore.New(pool), rig.Faults{Before: func(_ context.Context, op rig.Op) error {
			if op == rig.OpRunnable {
				c.reads++
			}
			return nil
		}})
		notifier := memnotify.New(memnotify.Config{})
		var err error
		if c.queue, err = eventqueue.New(store, notifier, eventqueue.QueueConfig{}); err != nil {
			t.Fatal(err)
		}
		handlers := eventqueue.NewHandlers()
		if err := handlers.Register(rig.Key, eventqueue.HandlerFunc(c.run), eventqueue.Policy{Timeout: time.Hour}); err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(c.queue, store, notifier, handlers, worker.Config{Concurrency: concurrency, GracePeriod: -1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		var working sync.WaitGroup
		working.Go(func() { _ = w.Run(ctx) }) // it returns nil: it is called once
		f(c)
		stop()
		working.Wait()
	})
}

func (c *crowd) run(ctx context.Context, run *eventqueue.Run) error {
	c.mu.Lock()
	c.running[run.Canvas]++
	c.mu.Unlock()
	if run.Canvas == rig.Canvas {
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[run.Canvas]--
	c.ended[run.Canvas]++
	return nil
}

func (c *crowd) emit(canvas eventqueue.CanvasID, n int) {
	c.t.Helper()
	events := slices.Repeat([]eventqueue.NewEvent{rig.Event(`1`)}, n)
	for i := range events {
		events[i].Canvas = canvas
	}
	if _, err := c.queue.EmitMany(c.t.Context(), events); err != nil {
		c.t.Fatal(err)
	}
}

// TestAFullWorkerServesOtherCanvases has one canvas take all the slots that it
// can get (I15).
func TestAFullWorkerServesOtherCanvases(t *testing.T) {
	t.Parallel()
	withCrowd(t, 32, func(c *crowd) {
		c.emit(rig.Canvas, 3000)
		rig.Pass(10 * time.Second)
		others := []eventqueue.CanvasID{{1}, {0xfe}, {0xff}}
		for _, other := range others {
			c.emit(other, 20)
		}
		rig.Pass(time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, other := range others {
			if c.ended[other] != 20 {
				t.Errorf("%d of the 20 events of canvas %s have run", c.ended[other], other)
			}
		}
		if n := c.running[rig.Canvas]; n != 30 {
			t.Errorf("the busy canvas has %d of 32 slots, want all but the two that are reserved for others", n)
		}
	})
}

// TestAWorkerThatIsNotFullAsksNothing has long runs in hand, and slots left.
func TestAWorkerThatIsNotFullAsksNothing(t *testing.T) {
	t.Parallel()
	withCrowd(t, 32, func(c *crowd) {
		c.emit(rig.Canvas, 20)
		rig.Pass(time.Minute)
		if c.reads != 0 {
			t.Errorf("the worker asked %d times for events of other canvases", c.reads)
		}
	})
}
