package operate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
	"eventsv2/eventqueue/pgstore"
	"eventsv2/eventqueue/ratelimit"
)

// At most 60 events of a tenant per minute, and 10,000 per day; and of these 1,000
// invoices.
func ExampleRateLimits() {
	var store *pgstore.Store    // as in Example
	var queue *eventqueue.Queue // as in Example
	tenant, err := eventqueue.ParseCanvasID("6b1e3f5c-1c9c-4f3a-9a3e-0d3f2b7a9c11")
	if err != nil {
		log.Fatal(err)
	}
	if store == nil || queue == nil {
		return
	}
	limits, err := operate.NewRateLimits(store, queue)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := limits.Set(ctx, operate.RateLimit{
		Scope:     eventqueue.Scope{Canvas: tenant},
		PerMinute: 60,
		PerDay:    10_000,
	}); err != nil {
		log.Fatal(err)
	}
	if _, err := limits.Set(ctx, operate.RateLimit{
		Scope:  eventqueue.Scope{Canvas: tenant, Module: "WORKER", Name: "send_invoice"},
		PerDay: 1000,
		Mode:   ratelimit.Approximate,
	}); err != nil {
		log.Fatal(err)
	}

	// Before an event is emitted: may it run now?
	invoice := eventqueue.HandlerKey{Module: "WORKER", Name: "send_invoice", Modifier: "_"}
	wait, err := limits.Check(ctx, tenant, invoice)
	if err != nil {
		log.Fatal(err)
	}
	if wait > 0 {
		fmt.Println("too many: try again in", wait)
		return
	}
	if _, err := queue.Emit(ctx, eventqueue.NewEvent{
		Canvas: tenant, Module: invoice.Module, Name: invoice.Name, Modifier: invoice.Modifier, Value: json.RawMessage(`{"invoice": 7}`),
	}); err != nil {
		log.Fatal(err)
	}
}
