package main

import "eventsv2/test/webtarget"

// writeHandlersFile sends all events of the soak to one URL.
func writeHandlersFile(path, to string) error {
	var handlers []webtarget.Handler
	for _, key := range handlerKeys() {
		handlers = append(handlers, webtarget.Handler{Key: key, Timeout: handlerTimeout, MaxRetries: maxRetries,
			BackoffBase: backoffBase, BackoffMax: backoffMax})
	}
	return webtarget.WriteHandlersFile(path, to, handlers)
}
