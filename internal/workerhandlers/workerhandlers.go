// Package workerhandlers writes and reads the handlers of a worker as event_workers has them.
//
// Any role that may run events can write that table, with SQL as well, so reading never fails: it leaves out what it
// cannot read, and says so. A row that makes no sense then costs no reader the other rows.
package workerhandlers

import (
	"encoding/json"
	"time"

	"eventsv2/eventqueue"
)

// Handler is one handler. Without a canvas it is for every one.
type Handler struct {
	Module   string               `json:"module"`
	Name     string               `json:"name"`
	Modifier string               `json:"modifier"`
	Canvas   *eventqueue.CanvasID `json:"canvas_id,omitempty"`
}

// List returns the handlers of a set, never nil.
func List(set eventqueue.HandlerSet) []Handler {
	list := make([]Handler, 0, len(set.Everywhere)+len(set.OnCanvas))
	for _, key := range set.Everywhere {
		list = append(list, Of(eventqueue.CanvasHandler{Key: key}))
	}
	for _, on := range set.OnCanvas {
		list = append(list, Of(on))
	}
	return list
}

// Of is one handler; the zero canvas is none.
func Of(h eventqueue.CanvasHandler) Handler {
	handler := Handler{h.Key.Module, h.Key.Name, h.Key.Modifier, nil}
	if h.Canvas != (eventqueue.CanvasID{}) {
		handler.Canvas = &h.Canvas
	}
	return handler
}

// Of is the inverse of the function of that name.
func (h Handler) Of() eventqueue.CanvasHandler {
	of := eventqueue.CanvasHandler{Key: eventqueue.HandlerKey{Module: h.Module, Name: h.Name, Modifier: h.Modifier}}
	if h.Canvas != nil {
		of.Canvas = *h.Canvas
	}
	return of
}

// Breaker is a circuit breaker that is open.
type Breaker struct {
	Handler
	Since time.Time `json:"since"`
	Error string    `json:"error" doc:"Of the run that failed last."`
}

// ReadBreakers reads a list of breakers, without those that it cannot read.
func ReadBreakers(list []byte) (open []Breaker) {
	var elements []json.RawMessage
	_ = json.Unmarshal(list, &elements) // of what is no list there is none
	for _, element := range elements {
		var b Breaker
		if json.Unmarshal(element, &b) == nil {
			open = append(open, b)
		}
	}
	return open
}

// Read reads a list of handlers. whole reports whether it could read all of it.
func Read(list []byte) (set eventqueue.HandlerSet, whole bool) {
	var elements []json.RawMessage
	whole = json.Unmarshal(list, &elements) == nil && elements != nil
	for _, element := range elements {
		var doc Handler
		if json.Unmarshal(element, &doc) != nil || doc.Module == "" || doc.Name == "" {
			whole = false
			continue
		}
		key := eventqueue.HandlerKey{Module: doc.Module, Name: doc.Name, Modifier: doc.Modifier}
		if doc.Canvas == nil {
			set.Everywhere = append(set.Everywhere, key)
		} else {
			set.OnCanvas = append(set.OnCanvas, eventqueue.CanvasHandler{Canvas: *doc.Canvas, Key: key})
		}
	}
	return set, whole
}
