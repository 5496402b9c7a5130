// Package wakeups reports that a part of a program does not receive the wake-ups that others send over Postgres, for the log and
// for readiness. Such a part goes on with its work at intervals of its own.
package wakeups

import (
	"errors"
	"sync/atomic"
)

// Error means that a part of a program does not receive the wake-ups that others send over
// Postgres.
type Error struct{ Err error }

func (e *Error) Error() string { return "wake-ups over Postgres do not arrive: " + e.Err.Error() }

// Unwrap returns why they do not.
func (e *Error) Unwrap() error { return e.Err }

// Effect says what follows from it, as readiness does.
func (e *Error) Effect() string {
	return "wake-ups over Postgres do not arrive, and events are found by polling"
}

// Advice says what is wrong, without the names of resources.
func (e *Error) Advice() string {
	var advised interface{ Advice() string }
	if errors.As(e.Err, &advised) {
		return advised.Advice()
	}
	return "the connection that listens cannot be used, and another one is opened again and again"
}

// State is the state of a listener. The zero value receives. It is safe for concurrent use.
type State struct{ why atomic.Pointer[error] }

// Is records why the listener does not receive wake-ups; an error with a method Effect is recorded as it is.
func (s *State) Is(err error) {
	var known interface{ Effect() string }
	if !errors.As(err, &known) {
		err = &Error{err}
	}
	s.why.Store(&err)
}

// Ends records that it receives again.
func (s *State) Ends() { s.why.Store(nil) }

// Failure returns an error with Effect and Advice while the listener does not receive.
func (s *State) Failure() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}
