package memstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/memnotify"
	"eventsv2/eventqueue/memstore"
	"eventsv2/eventqueue/worker"
)

// A unit test of a handler: the queue runs it as in production, without Postgres
// and without Pub/Sub.
func Example() {
	store, notifier := memstore.New(memstore.Config{}), memnotify.New(memnotify.Config{})
	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	handlers := eventqueue.NewHandlers()
	welcome := eventqueue.HandlerKey{Module: "WORKER", Name: "welcome", Modifier: "_"}
	if err := handlers.Register(welcome, eventqueue.HandlerFunc(func(_ context.Context, run *eventqueue.Run) error {
		defer close(done)
		fmt.Println("welcome", string(run.Value))
		return nil
	}), eventqueue.Policy{}); err != nil {
		fmt.Println(err)
		return
	}
	w, err := worker.New(queue, store, notifier, handlers, worker.Config{RetainHistory: true})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	if _, err := queue.Emit(ctx, eventqueue.NewEvent{
		Canvas: eventqueue.CanvasID{1}, Module: "WORKER", Name: "welcome", Modifier: "_", Value: json.RawMessage(`"Ada"`),
	}); err != nil {
		fmt.Println(err)
	}
	<-done
	cancel()
	if err := <-stopped; err != nil {
		fmt.Println(err)
	}
	for _, row := range store.Log() {
		fmt.Println(row.Status, row.Value)
	}
	// Output:
	// welcome "Ada"
	// COMPLETED "Ada"
}
