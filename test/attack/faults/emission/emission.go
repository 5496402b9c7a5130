package emission

import (
	"encoding/json"
	"time"

	"eventsv2/eventqueue"
)

// Event is an event to emit.
type Event struct {
	Canvas                 string
	Module, Name, Modifier string
	Value                  string
	Delay                  time.Duration
	OrderingKey            string
}

// Of makes it from what the library takes.
func Of(e eventqueue.NewEvent) Event {
	return Event{e.Canvas.String(), e.Module, e.Name, e.Modifier, string(e.Value), e.Delay, e.OrderingKey}
}

// NewEvent is what the library takes.
func (e Event) NewEvent() (eventqueue.NewEvent, error) {
	canvas, err := eventqueue.ParseCanvasID(e.Canvas)
	return eventqueue.NewEvent{Canvas: canvas, Module: e.Module, Name: e.Name, Modifier: e.Modifier,
		Value: json.RawMessage(e.Value), Delay: e.Delay, OrderingKey: e.OrderingKey}, err
}
