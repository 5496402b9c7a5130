package otelevents

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"eventsv2/eventqueue/minutes"
)

// MaxHandlers is how many handlers have series of their own: those that come first. The others are counted
// together, as the handler "other".
const MaxHandlers = 20

// ends are the values of the attribute end.
var ends = [...]string{minutes.RunCompleted: "completed", minutes.RunFailed: "failed", minutes.RunRetried: "retried"}

// handler has the attributes of one handler.
type handler struct {
	itself metric.MeasurementOption
	ends   [len(ends)]metric.MeasurementOption
}

func newHandler(name string) *handler {
	of := attribute.String("handler", name)
	h := &handler{itself: with(of)}
	for end, name := range ends {
		h.ends[end] = with(of, attribute.String("end", name))
	}
	return h
}

type handlerName struct{ module, name string }

// handlers has the attributes of those that have series of their own. It is safe for concurrent use.
type handlers struct {
	mu    sync.RWMutex
	known map[handlerName]*handler
	other *handler
}

// of returns the attributes of a handler.
func (h *handlers) of(module, name string) *handler {
	key := handlerName{module, name}
	h.mu.RLock()
	known, other := h.known[key], h.other
	h.mu.RUnlock()
	switch {
	case known != nil:
		return known
	case other != nil:
		return other
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := h.known[key]; known != nil {
		return known
	}
	if len(h.known) >= MaxHandlers {
		if h.other == nil {
			h.other = newHandler("other")
		}
		return h.other
	}
	if h.known == nil {
		h.known = map[handlerName]*handler{}
	}
	h.known[key] = newHandler(module + "/" + name)
	return h.known[key]
}
