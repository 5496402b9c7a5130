package eventqueue

// Keys of log fields.
const (
	logEvent    = "event_id"
	logCanvas   = "canvas_id"
	logHandler  = "handler"
	logLabel    = "label"
	logAttempt  = "attempt"
	logRetries  = "retries"
	logCount    = "count"
	logDelay    = "delay"
	logDuration = "duration"
	logStack    = "stack"
	logWait     = "retry_in"

	logMaxEvents = "max_events"
	logTTL       = "ttl"
)
