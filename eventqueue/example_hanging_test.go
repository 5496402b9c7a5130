package eventqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/worker"
	"eventsv2/test/rig"
)

// The handler that docs/handlers.md begins with ends an event whose service hangs as its policy
// says: each time-out is a failed attempt, and after the last one it is FAILED.
//
//nolint:paralleltest // It replaces what the example calls.
func TestFirstHandlerOfThePageFailsOnAHangingService(t *testing.T) {
	const attempts = 6 // the 5 retries of the example's policy, and the first run
	hangs, called := chargeCard, 0
	t.Cleanup(func() { chargeCard, handlers = hangs, nil })
	handlers = eventqueue.NewHandlers()
	ExampleHandlers_Register()
	rig.InBubble(t, func(t *testing.T, pool *pgxpool.Pool) {
		chargeCard = func(ctx context.Context, _ string) error {
			called++
			<-ctx.Done()
			return errors.New("the card processor: no answer") // as a client that hides the cause
		}
		store, notifier := pgstore.New(pool), memnotify.New(memnotify.Config{})
		queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(queue, store, notifier, handlers, worker.Config{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		if _, err := queue.Emit(t.Context(), eventqueue.NewEvent{Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "charge", Modifier: "_",
			Value: []byte(`{"Customer": "x"}`)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // of the bubble
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := queue.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := rig.Scalar[int](t, pool, `SELECT count(*) FROM events_v2`); called != attempts || left > 0 {
			t.Fatalf("%d runs and %d events left, want %d and 0", called, left, attempts)
		}
		if ended := rig.Scalar[string](t, pool, `SELECT status || ' ' || last_error FROM event_log`); !strings.HasPrefix(ended, "FAILED ") || !strings.Contains(ended, "no answer") {
			t.Errorf("the event ended as %s", ended)
		}
	})
}
