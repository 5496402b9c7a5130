package main

import (
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/webtarget"
)

// maxRetries is enough for an answer that fails on purpose and for a crash, even if a busy
// machine causes more failures: all events that the target does not refuse complete.
const maxRetries = 20

// writeHandlersFile maps every handler to one URL, with waits between retries that are
// short enough to watch.
func writeHandlersFile(path string, keys []eventqueue.HandlerKey, target string) error {
	handlers := make([]webtarget.Handler, len(keys))
	for i, key := range keys {
		handlers[i] = webtarget.Handler{Key: key, MaxRetries: maxRetries, BackoffBase: 200 * time.Millisecond, BackoffMax: 2 * time.Second}
	}
	return webtarget.WriteHandlersFile(path, target, handlers)
}
