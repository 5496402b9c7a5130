package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// crowd is a worker on a queue whose handlers of the busy canvas do
// not end before the test does.
type crowd struct {
	*rig.Rig
	reads int // for events of other canvases

	mu      sync.Mutex
	running map[eventqueue.CanvasID]int
	ended   map[eventqueue.CanvasID]int
}

// withCrowd runs a test in virtual time.
func withCrowd(t *testing.T, concurrency int, f func(c *crowd)) {
	t.Helper()
	rig.Virtual(t, func(_ *testing.T, r *rig.Rig) {
		c := &crowd{Rig: r, running: map[eventqueue.CanvasID]int{}, ended: map[eventqueue.CanvasID]int{}}
		r.Handle(c.run, eventqueue.Policy{Timeout: time.Hour})
		r.StartOn(rig.Faulty(r.Store, rig.Faults{Before: func(_ context.Context, op rig.Op) error {
			if op == rig.OpRunnable {
				c.reads++
			}
			return nil
		}}), worker.Config{Concurrency: concurrency, GracePeriod: -1})
		f(c)
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
	c.T.Helper()
	events := c.Copies(n)
	for i := range events {
		events[i].Canvas = canvas
	}
	c.Emit(events...)
}

// TestFullWorkerServesOtherCanvases has one canvas take all the slots that it
// can get (I15).
func TestFullWorkerServesOtherCanvases(t *testing.T) {
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

// TestWorkerWithFreeSlotsQueriesNothing has long runs in hand, and slots left.
func TestWorkerWithFreeSlotsQueriesNothing(t *testing.T) {
	t.Parallel()
	withCrowd(t, 32, func(c *crowd) {
		c.emit(rig.Canvas, 20)
		rig.Pass(time.Minute)
		if c.reads != 0 {
			t.Errorf("the worker asked %d times for events of other canvases", c.reads)
		}
	})
}
