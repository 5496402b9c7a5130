package fallback_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/machine"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// broker is an in-memory notifier that can be down.
type broker struct {
	*memnotify.Notifier
	down atomic.Bool
}

var errDown = errors.New("down")

func (b *broker) state() error {
	if b.down.Load() {
		return errDown
	}
	return nil
}

func (b *broker) Check(context.Context) error { return b.state() }

func (b *broker) set(down bool) {
	b.down.Store(down)
	// Inject also reaches the pulls that wait.
	b.Inject(memnotify.Faults{Publish: b.state, Pull: b.state, Ack: b.state, Requeue: b.state})
}

func TestWorkGoesOnWhileTheNotifierIsDown(t *testing.T) {
	t.Parallel()
	pool := testenv.Pool(t)
	store := pgstore.New(pool)
	b := &broker{Notifier: memnotify.New(memnotify.Config{})}
	queue, err := eventqueue.New(store, b, eventqueue.QueueConfig{PublishRest: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	receiver, err := fallback.New(b, store, fallback.Config{After: 50 * time.Millisecond, Poll: 20 * time.Millisecond,
		Sweep: 50 * time.Millisecond, Quiet: time.Millisecond, Probe: 20 * time.Millisecond, Logger: testenv.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	handlers := eventqueue.NewHandlers()
	key := eventqueue.HandlerKey{Module: "M", Name: "n", Modifier: "_"}
	failed := sync.Map{}
	if err := handlers.Register(key, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		if _, again := failed.LoadOrStore(run.ID, true); !again && run.ID%3 == 0 {
			return errors.New("the first time")
		}
		return nil
	}), eventqueue.Policy{Backoff: func(int) time.Duration { return time.Millisecond }}); err != nil {
		t.Fatal(err)
	}
	completed := make(chan eventqueue.EventID, 1000)
	worker, err := eventqueue.NewWorker(queue, store, receiver, handlers, eventqueue.WorkerConfig{
		Observe: func(out eventqueue.Outcome) {
			if out.Label == machine.ExecutesToCompletion {
				completed <- out.Event
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { stop(); working.Wait() })

	emit := func(n int) {
		t.Helper()
		events := make([]eventqueue.NewEvent, n)
		for i := range events {
			events[i] = eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "M", Name: "n", Modifier: "_", Value: json.RawMessage(`1`)}
		}
		if _, err := queue.EmitMany(testenv.Context(t), events); err != nil {
			t.Fatal(err)
		}
	}
	await := func(n int) {
		t.Helper()
		for range n {
			select {
			case <-completed:
			case <-testenv.Context(t).Done():
				t.Fatalf("waited for %d events", n)
			}
		}
	}
	emit(10)
	await(10)
	// Some are lost with the broker, the others are emitted while it is down.
	b.Drop(10)
	emit(10)
	b.set(true)
	emit(100)
	emit(100)
	await(210)
	b.set(false)
	testenv.Eventually(t, "the queue publishes again", func() bool {
		emit(1)
		await(1)
		return b.Stats().Published > 20
	})
	emit(50)
	await(50)
	testenv.Eventually(t, "every row is gone", func() bool {
		var n int
		return pool.QueryRow(testenv.Context(t), `SELECT count(*) FROM events_v2`).Scan(&n) == nil && n == 0
	})
	select {
	case id := <-completed:
		t.Errorf("event %s was completed twice", id)
	default:
	}
}
