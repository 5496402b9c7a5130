package eventqueue

import "time"

// Unavailable wraps the error of a run to say that what its handler calls is away, and that the event is not to blame: a
// server that does not answer, or refuses everything. The run ends as err says. Beyond that the worker counts such runs, and
// after [Policy.BreakerAfter] of them in a row it lets the handler's events wait until the server is back. retryAfter is
// how long the server has asked to be left alone; 0: it has not.
func Unavailable(err error, retryAfter time.Duration) error {
	return &unavailableError{err, max(retryAfter, 0)}
}

type unavailableError struct {
	error
	retryAfter time.Duration
}

func (e *unavailableError) Unwrap() error { return e.error }

// Unavailable is how the worker recognises it.
func (e *unavailableError) Unavailable() (retryAfter time.Duration) { return e.retryAfter }
