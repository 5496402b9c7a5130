package eventctl

import (
	"errors"
	"fmt"

	"eventsv2/cronchecker"
	"eventsv2/eventqueue"
	"eventsv2/eventqueue/ndjson"
	"eventsv2/eventqueue/pgsession"
	"eventsv2/internal/sqlstate"
)

// The exit statuses.
const (
	exitOK       = 0
	exitFailed   = 1
	exitBadInput = 2
	exitNotFound = 3
)

// exitStatuses is the part of every help that explains the exit statuses.
const exitStatuses = `Exit status:
  0  done
  1  failed: the database, Pub/Sub or an output did not work, or an interrupt
  2  bad usage or bad input: nothing was written
  3  not found: an unknown event, rule, limit or cron definition, or an event that is refused
`

// failure is an error with its exit status.
type failure struct {
	status int
	err    error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func failed(err error) error {
	if err == nil {
		return nil
	}
	if refused := sqlstate.RefusedKey(err); refused != "" {
		return badInput(errors.New(refused))
	}
	return &failure{exitFailed, err}
}

func badInput(err error) error { return &failure{exitBadInput, err} }

func notFound(format string, args ...any) error {
	return &failure{exitNotFound, fmt.Errorf(format, args...)}
}

// exitStatus returns the exit status for an error. Commands return a failure; any other
// error comes from the parser of the command line.
func exitStatus(err error) int {
	var (
		named   *failure
		invalid *eventqueue.InvalidError
		line    *ndjson.Error
		url     *pgsession.URLError
	)
	switch {
	case errors.As(err, &invalid), errors.As(err, &line), errors.As(err, &url):
		return exitBadInput
	case errors.Is(err, cronchecker.ErrNotFound):
		return exitNotFound
	case errors.As(err, &named):
		return named.status
	default:
		return exitBadInput
	}
}
