package service_test

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/service"
)

// SearchIndex takes many documents as fast as one.
type SearchIndex interface {
	// Put returns why documents were not taken, each at its index.
	Put(ctx context.Context, pages []PageChanged) []error
}

// A handler that gets up to 500 events at once, of which the first has waited for 200 ms at most.
func ExampleOnBatch() {
	var s *service.Service
	var search SearchIndex
	register := func() error {
		return service.OnBatch(s, "index", 500, 200*time.Millisecond, func(ctx context.Context, pages []PageChanged, _ []*eventqueue.Run) []error {
			return search.Put(ctx, pages) // an error at the index of each that has to be tried again, or nil
		})
	}
	_ = register
}
