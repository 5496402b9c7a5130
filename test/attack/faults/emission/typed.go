package emission

import (
	"context"
	"errors"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
)

// Module is that of the typed events.
const Module = "RECORD"

// Record is a typed event, and Made one of its children by key: the handlers of Record
// get both.
type Record struct {
	N int `json:"n"`
}

// EventType implements typed.Event.
func (Record) EventType() string { return Module }

// EventAction implements typed.Event.
func (Record) EventAction() string { return "" }

// Made is what the scenarios emit.
type Made struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// EventType implements typed.Event.
func (Made) EventType() string { return Module }

// EventAction implements typed.Event.
func (Made) EventAction() string { return "CREATE" }

// Children are the handlers that get an event of their own for each Made.
func Children() []eventqueue.HandlerKey {
	const key = Module + ".CREATE"
	return []eventqueue.HandlerKey{{Module: Module, Name: "index", Modifier: key}, {Module: Module, Name: "mail", Modifier: key}}
}

// Bus knows the events, and has post as the handler of all of them; see Add.
func Bus(queue *eventqueue.Queue, post eventqueue.HandlerFunc) (*typed.Bus, error) {
	bus, err := typed.New(queue, typed.Config{})
	if err != nil {
		return nil, err
	}
	return bus, Add(bus, post)
}

// Add has a bus know the events, with post as the handler of all of them: once within the
// run of the event itself, and once for each of Children.
func Add(bus *typed.Bus, post eventqueue.HandlerFunc) error {
	return errors.Join(
		typed.On(bus, "audit", func(ctx context.Context, _ Record, run *eventqueue.Run) error { return post(ctx, run) }, typed.Synchronous()),
		typed.On(bus, "mail", func(ctx context.Context, _ Record, run *eventqueue.Run) error { return post(ctx, run) }),
		typed.On(bus, "index", func(ctx context.Context, _ Made, run *eventqueue.Run) error { return post(ctx, run) }),
	)
}
