package fallback_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
)

// generous is a notifier that delivers two notifications to whoever asks for one, when it
// is let, whatever became of who asked.
type generous struct {
	asked, let chan struct{}

	mu   sync.Mutex
	back int // deliveries that were given back
}

func (g *generous) Pull(context.Context, int) ([]eventqueue.Delivery, error) {
	g.asked <- struct{}{}
	<-g.let
	ds := make([]eventqueue.Delivery, 2)
	for i := range ds {
		ds[i] = eventqueue.Delivery{Notification: eventqueue.Notification{Event: eventqueue.EventID(i + 1)}, AckID: strconv.Itoa(i)}
	}
	return ds, nil
}

func (g *generous) Ack(context.Context, []eventqueue.Delivery) error { return nil }

func (g *generous) Requeue(_ context.Context, ds []eventqueue.Delivery, _ time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.back += len(ds)
	return nil
}

func (g *generous) Check(context.Context) error { return nil }

// never finds nothing.
type never struct{}

func (never) TakeDue(context.Context, time.Duration, int, maintenance.AwaitTake) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (never) TakeLost(context.Context, eventqueue.EventID, int, time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	return nil, 0, nil
}

func (never) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	return nil, maintenance.RoundPlace{}, nil
}

func (never) MarkPending(context.Context, []eventqueue.EventID) error { return nil }

// TestAttendReturnsAfterAllTasks: a Pull takes what the last pull of the notifier has
// brought in the very moment in which Attend stops waiting for it. What the Pull may not
// return is given back before both have returned. Which of them is first is the
// scheduler's to decide, so it is tried often.
func TestAttendReturnsAfterAllTasks(t *testing.T) {
	t.Parallel()
	for range 2000 {
		g := &generous{asked: make(chan struct{}), let: make(chan struct{})}
		r, err := fallback.New(g, never{}, fallback.Config{})
		if err != nil {
			t.Fatal(err)
		}
		attending, stop := context.WithCancel(t.Context())
		pulling, leave := context.WithCancel(t.Context())
		var both sync.WaitGroup
		pulled := 0
		both.Go(func() { _ = r.Attend(attending) }) // it fails only if the notifier is unfit
		both.Go(func() {
			ds, err := r.Pull(pulling, 1)
			if pulled = len(ds); err != nil {
				t.Error(err)
			}
			leave()
		})
		<-g.asked
		stop()
		close(g.let)
		both.Wait()
		g.mu.Lock()
		back := g.back
		g.mu.Unlock()
		if pulled != 1 || back != 1 {
			t.Fatalf("%d were pulled, and %d given back when nobody was left", pulled, back)
		}
	}
}
