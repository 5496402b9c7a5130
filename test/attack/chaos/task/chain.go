package task

import (
	"context"
	"errors"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/typed"
)

// ChainModule is the module of typed events and of the events that their completion emits.
const ChainModule = "CHAIN"

// EventType and EventAction make a task a typed event as well.
func (Task) EventType() string { return ChainModule }

// EventAction is that of the only typed event.
func (Task) EventAction() string { return "CREATE" }

// Dispatch is the handler of a typed event: it obeys the event, and in the transaction that
// completes it emits one event for each of Links.
func Dispatch() eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: ChainModule, Name: "CREATE", Modifier: "_"}
}

// Links are the handlers that get an event of their own for each typed event. They obey it, too.
func Links() []eventqueue.HandlerKey {
	return []eventqueue.HandlerKey{
		{Module: ChainModule, Name: "index", Modifier: "CHAIN.CREATE"},
		{Module: ChainModule, Name: "mail", Modifier: "CHAIN.CREATE"},
	}
}

// Chain knows the typed event, and has obey as all of its handlers. They run like those of Handlers.
func Chain(queue *eventqueue.Queue, obey eventqueue.HandlerFunc) (*typed.Bus, error) {
	h := Handlers()[0]
	policy := eventqueue.Policy{Timeout: h.Timeout, MaxRetries: &h.MaxRetries, Backoff: eventqueue.Exponential(h.BackoffBase, h.BackoffMax)}
	bus, err := typed.New(queue, typed.Config{Dispatch: policy})
	if err != nil {
		return nil, err
	}
	run := func(ctx context.Context, _ Task, run *eventqueue.Run) error { return obey(ctx, run) }
	err = typed.On(bus, "audit", run, typed.Synchronous()) // within the dispatch, by its policy
	for _, link := range Links() {
		err = errors.Join(err, typed.On(bus, link.Name, run, typed.WithPolicy(policy)))
	}
	return bus, err
}
