package protocol

import (
	"encoding/json"

	"eventsv2/eventqueue"
)

// The tenants and the handler of most tests.
var (
	canvas  = eventqueue.CanvasID{0xca, 15: 1}
	another = eventqueue.CanvasID{0xca, 15: 2}
	key     = eventqueue.HandlerKey{Module: "WORKER", Name: "greet", Modifier: "_"}
	scope   = eventqueue.Scope{Canvas: canvas, Module: key.Module, Name: key.Name}
)

// event is one for that handler.
func event() eventqueue.NewEvent {
	return eventqueue.NewEvent{Canvas: canvas, Module: key.Module, Name: key.Name, Modifier: key.Modifier, Value: json.RawMessage(`1`)}
}
