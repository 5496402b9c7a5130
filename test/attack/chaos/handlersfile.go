package main

import (
	"eventsv2/test/attack/chaos/task"
	"eventsv2/test/webtarget"
)

// writeHandlersFile sends all handlers of the chaos run to one URL.
func writeHandlersFile(path, to string) error {
	var handlers []webtarget.Handler
	for _, h := range task.Handlers() {
		handlers = append(handlers, webtarget.Handler{Key: h.Key, Timeout: h.Timeout, MaxRetries: task.MaxRetries,
			BackoffBase: task.BackoffBase, BackoffMax: task.BackoffMax})
	}
	return webtarget.WriteHandlersFile(path, to, handlers)
}
