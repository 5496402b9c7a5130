package worker

import (
	"fmt"
	"slices"

	"eventsv2/eventqueue"
)

// within returns the handlers, each within the middleware of a worker.
func (c *Config) within(handlers *eventqueue.Handlers) (*eventqueue.Handlers, error) {
	if len(c.Middleware) == 0 {
		return handlers, nil
	}
	return handlers.Wrap(func(h eventqueue.Handler) (eventqueue.Handler, error) {
		for i, middleware := range slices.Backward(c.Middleware) {
			if h = middleware(h); h == nil {
				return nil, fmt.Errorf("Middleware[%d] has returned nil for it: return a handler", i)
			}
		}
		return h, nil
	})
}
