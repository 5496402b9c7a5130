package service

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/minutes"
	"eventsv2/eventqueue/worker"
	"eventsv2/webhook"
)

// Observer sees what the parts of a Service do, such as one that counts it for a monitoring system. Its methods
// are called from many goroutines, and must return fast.
type Observer interface {
	// Emitted and Ran are called for each event that was emitted and each run whose end was written, unless
	// Config.Queue.NoMinutes is set.
	minutes.Observer
	// Outcome is called with every outcome of the worker, after Config.Worker.Observe.
	Outcome(outcome worker.Outcome)
	// Published is called after each request that published notifications.
	Published(notifications int, took time.Duration, err error)
	// Relayed is called when the relay has published notifications, after Config.Relay.Observe.
	Relayed(relayed maintenance.Relayed)
	// Renewed is called after each statement that renews claims, after Config.Worker.ObserveRenewal.
	Renewed(renewal worker.Renewal)
	// Received is called for each request to a source of webhooks.
	Received(source webhook.Source, outcome webhook.Outcome, refused error)
	// Refused is called for each request to the HTTP API (via is api) or the dashboard (dashboard) that was answered with 401 or 403.
	Refused(via string, status int)
}

// observe has the observer see what worker and relay do.
func (c *Config) observe() {
	if c.Observer == nil {
		return
	}
	c.Worker.Observe = both(c.Worker.Observe, c.Observer.Outcome)
	c.Worker.ObserveRenewal = both(c.Worker.ObserveRenewal, c.Observer.Renewed)
	c.Relay.Observe = both(c.Relay.Observe, c.Observer.Relayed)
}

// both calls one function after the other; the first may be nil.
func both[T any](first, second func(T)) func(T) {
	if first == nil {
		return second
	}
	return func(value T) {
		first(value)
		second(value)
	}
}

// observedPublisher has an observer see the requests of a publisher.
type observedPublisher struct {
	publisher
	observer Observer
}

func (p observedPublisher) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	began := time.Now()
	err := p.publisher.Publish(ctx, notifications)
	p.observer.Published(len(notifications), time.Since(began), err)
	return err
}
