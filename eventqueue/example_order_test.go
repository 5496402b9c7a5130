package eventqueue_test

import (
	"context"
	"encoding/json"
	"log"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// The events of a cart run one at a time and in the order in which they were
// emitted, whatever handlers they are for. One that waits for longer than a minute
// until its next try lets the others of its cart go first.
func ExamplePolicy_orderHold() {
	for _, step := range []string{"order_placed", "order_paid", "order_shipped"} {
		if _, err := queue.Emit(context.Background(), eventqueue.NewEvent{
			Canvas: tenant, Module: "WORKER", Name: step, Modifier: "_", Value: json.RawMessage(`{"cart": 17}`),
			OrderingKey: "cart 17",
		}); err != nil {
			log.Fatal(err)
		}
	}

	paid := eventqueue.HandlerKey{Module: "WORKER", Name: "order_paid", Modifier: "_"}
	if err := handlers.Register(paid, charge, eventqueue.Policy{OrderHold: new(time.Minute)}); err != nil {
		log.Fatal(err)
	}
}

// At most ten events of a tenant run at once, of which at most two are reports.
func ExampleConcurrencyLimits() {
	limits, err := operate.NewConcurrencyLimits(store, queue)
	if err != nil {
		log.Fatal(err)
	}
	for _, limit := range []operate.ConcurrencyLimit{
		{Canvas: tenant, Max: 10},
		{Canvas: tenant, Module: "WORKER", Name: "report", Max: 2},
	} {
		if err := limits.Set(context.Background(), limit); err != nil {
			log.Fatal(err)
		}
	}
}

// charge stands for the code that runs events.
var charge = eventqueue.HandlerFunc(func(context.Context, *eventqueue.Run) error { return nil })
