package eventqueue

import (
	"errors"
	"fmt"
)

// Scope selects events of a rule: all events of a handler on a canvas, with
// any modifier. In the database Module is event_space and Name handler_name.
type Scope struct {
	Canvas CanvasID
	Module string
	Name   string
}

// String names the scope in messages.
func (s Scope) String() string { return fmt.Sprintf("%s/%s on canvas %s", s.Module, s.Name, s.Canvas) }

// Validate names the first field that cannot be stored.
func (s Scope) Validate() error {
	if s.Canvas == (CanvasID{}) {
		return errors.New("canvas_id: is missing")
	}
	if field, err := CheckHandler(HandlerKey{s.Module, s.Name, "_"}); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// WholeCanvas reports whether the scope is a whole canvas.
func (s Scope) WholeCanvas() bool { return s.Module == "" && s.Name == "" }

// ValidateRate names the first field that cannot be the scope of a RateLimit.
func (s Scope) ValidateRate() error {
	if s.WholeCanvas() {
		s.Module, s.Name = "_", "_" // only the canvas has to be checked
	}
	return s.Validate()
}
