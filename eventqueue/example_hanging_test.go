package eventqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

// The handler that docs/handlers.md begins with ends an event whose service hangs as its policy
// says: each time-out is a failed attempt, and after the last one it is FAILED.
//
//nolint:paralleltest // It replaces what the example calls.
func TestTheFirstHandlerOfThePageFailsAServiceThatHangs(t *testing.T) {
	const attempts = 6 // the 5 retries of the example's policy, and the first run
	hangs, called := chargeCard, 0
	t.Cleanup(func() { chargeCard, handlers = hangs, nil })
	handlers = eventqueue.NewHandlers()
	ExampleHandlers_Register()
	synctest.Test(t, func(t *testing.T) {
		chargeCard = func(ctx context.Context, _ string) error {
			called++
			<-ctx.Done()
			return errors.New("the card processor: no answer") // as a client that hides the cause
		}
		memory, notifier := memstore.New(memstore.Config{}), memnotify.New(memnotify.Config{})
		queue, err := eventqueue.New(memory, notifier, eventqueue.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := worker.New(queue, memory, notifier, handlers, worker.Config{})
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
		log := memory.Log()
		if called != attempts || len(memory.Events()) > 0 || len(log) != 1 {
			t.Fatalf("%d runs, %d events left and %d ended, want %d, 0 and 1", called, len(memory.Events()), len(log), attempts)
		}
		if log[0].Status != maintenance.LogFailed || !strings.Contains(log[0].LastError, "no answer") {
			t.Errorf("the event ended as %s with %q", log[0].Status, log[0].LastError)
		}
	})
}
