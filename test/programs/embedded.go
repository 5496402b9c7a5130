package programs

import (
	"context"

	"golang.org/x/sync/errgroup"

	"eventsv2/eventqueue"
	"eventsv2/service"
	"eventsv2/test/webtarget"
)

// Embed runs a program that embeds the queue until ctx ends. What beside does goes on until the queue
// has stopped; its error stops the queue.
func Embed(ctx context.Context, config service.Config, register func(*service.Service) error, beside func(context.Context) error) error {
	until, stopped := context.WithCancel(context.WithoutCancel(ctx))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return beside(until) })
	group.Go(func() error {
		defer stopped()
		return service.Run(ctx, config, register)
	})
	return group.Wait()
}

// Register adds handlers that all do the same.
func Register(s *service.Service, handlers []webtarget.Handler, handle eventqueue.HandlerFunc) error {
	for _, h := range handlers {
		policy := eventqueue.Policy{Timeout: h.Timeout, MaxRetries: &h.MaxRetries, Backoff: eventqueue.Exponential(h.BackoffBase, h.BackoffMax)}
		if err := s.Register(h.Key, handle, policy); err != nil {
			return err
		}
	}
	return nil
}
