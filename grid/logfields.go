package grid

// The keys of log fields.
const (
	logEvent   = "event_id"
	logGrid    = "grid"
	logAction  = "action"
	logTook    = "took"
	logSkipped = "skipped"
	logCount   = "count"
	logWait    = "wait"
)
