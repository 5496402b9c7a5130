package cronchecker

// Keys of log fields.
const (
	logCron        = "cron_id"
	logCanvas      = "canvas_id"
	logName        = "name"
	logDefinitions = "definitions"
	logDue         = "due"
	logEmitted     = "emitted"
	logWait        = "retry_in"
)
