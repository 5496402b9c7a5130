package worker

import (
	"fmt"
	"slices"

	"eventsv2/eventqueue"
)

// Wrap returns the handlers, each within the Middleware of a valid Config. New does so by itself. Who makes several workers of the
// same handlers gives them the result, and no Middleware, so that each middleware is called once for each handler.
func (c *Config) Wrap(handlers *eventqueue.Handlers) (*eventqueue.Handlers, error) {
	if len(c.Middleware) == 0 {
		return handlers, nil
	}
	return handlers.Wrap(func(h eventqueue.Handler) (eventqueue.Handler, error) {
		handler := h
		for i, middleware := range slices.Backward(c.Middleware) {
			if h = middleware(h); h == nil {
				return nil, fmt.Errorf("Middleware[%d] has returned nil for it: return a handler", i)
			}
		}
		return &within{h, handler}, nil
	})
}

// within is a handler within its middleware.
type within struct {
	eventqueue.Handler
	handler eventqueue.Handler // as it was registered
}
