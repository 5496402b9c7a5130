package main

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/webtarget"
)

// maxRetries is enough for an answer that fails on purpose and for a crash, also
// where a busy machine adds more: what the target does not refuse ends well.
const maxRetries = 20

// writeHandlersFile sends every handler to one URL, with short waits between
// retries, since nobody wants to watch the defaults.
func writeHandlersFile(path string, keys []eventqueue.HandlerKey, target string) error {
	handlers := make([]webtarget.Handler, len(keys))
	for i, key := range keys {
		handlers[i] = webtarget.Handler{Key: key, MaxRetries: maxRetries, BackoffBase: 200 * time.Millisecond, BackoffMax: 2 * time.Second}
	}
	return webtarget.WriteHandlersFile(path, target, handlers)
}
