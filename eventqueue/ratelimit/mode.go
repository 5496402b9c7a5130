package ratelimit

// Mode determines how strict a limit is, and what it costs.
type Mode string

// The modes of a RateLimit.
const (
	// Exact never admits more events in a window than the limit says. A worker asks the
	// database before it runs an event of the limit's scope.
	Exact Mode = "exact"

	// Approximate lets a worker decide from the counts that it knows, and report to the database
	// afterwards. A worker begins at most ClaimBatch events before it reports them. So a window
	// overshoots by at most ClaimBatch times the number of workers; the overshoot is taken from
	// the next window.
	Approximate Mode = "approximate"
)

// MaxRate is the largest number of events that a limit may name.
const MaxRate = 1_000_000_000
