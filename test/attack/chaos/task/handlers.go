package task

import (
	"time"

	"eventsv2/eventqueue"
)

// Module is that of all events of the chaos run but those that cron emits.
const Module = "CHAOS"

// The policy of all handlers: enough retries for what goes wrong on purpose and
// for several faults, and short waits.
const (
	MaxRetries  = 8
	BackoffBase = 200 * time.Millisecond
	BackoffMax  = 2 * time.Second
)

// Handler is one of the handlers.
type Handler struct {
	Key     eventqueue.HandlerKey
	Timeout time.Duration
}

// CronName is the name of the cron definition of the chaos run.
const CronName = "every_minute"

// Handlers lists the handlers that every worker has.
func Handlers() []Handler {
	return []Handler{
		{eventqueue.HandlerKey{Module: Module, Name: "quick", Modifier: "_"}, 10 * time.Second},
		{eventqueue.HandlerKey{Module: Module, Name: "busy", Modifier: "_"}, 10 * time.Second},
		// Its runs take longer than a lock lasts: only heartbeats keep it.
		{eventqueue.HandlerKey{Module: Module, Name: "slow", Modifier: "_"}, 20 * time.Second},
		{eventqueue.HandlerKey{Module: Module, Name: "stubborn", Modifier: "_"}, time.Second},
		{eventqueue.HandlerKey{Module: "CRON", Name: CronName, Modifier: "_"}, 10 * time.Second},
	}
}

// TimeoutOf is the timeout of a handler, by its name.
func TimeoutOf(name string) time.Duration {
	for _, h := range Handlers() {
		if h.Key.Name == name {
			return h.Timeout
		}
	}
	return time.Minute
}
