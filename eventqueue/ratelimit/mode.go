package ratelimit

// Mode says what a limit costs, and how strict it is.
type Mode string

// The modes of a RateLimit.
const (
	// Exact never lets more events begin in a window than the limit says. A worker asks the
	// database before it runs anything of the limit's scope.
	Exact Mode = "exact"

	// Approximate lets a worker decide from the counts that it knows, and report to the database
	// afterwards. Each worker may let no more than its ClaimBatch of events begin before it reports
	// them, so the windows overshoot by at most that times the number of workers; the overshoot is
	// taken from the next window.
	Approximate Mode = "approximate"
)

// MaxRate is the largest number of events that a limit may name.
const MaxRate = 1_000_000_000
