package refusal

import "errors"

// Emit is why an emit was refused before the database was asked to write any of its events: by a
// middleware, or because an event is not valid. Its text is that of Err.
type Emit struct{ Err error }

func (e *Emit) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Emit) Unwrap() error { return e.Err }

// IsEmit reports whether an error is an Emit.
func IsEmit(err error) bool {
	var refused *Emit
	return errors.As(err, &refused)
}
