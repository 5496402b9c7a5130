package operate

import (
	"errors"
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// CanvasName is what people call a canvas. No two canvases have the same name, so that a name selects a canvas as its uuid does.
type CanvasName struct {
	Canvas eventqueue.CanvasID
	// Name passes CheckCanvasName.
	Name string
}

// ErrCanvasNameTaken is returned by a store that is asked to give a canvas the name of another one.
var ErrCanvasNameTaken = errors.New("another canvas has this name: take it away from that one, or choose another")

// CheckCanvasName refuses what cannot be the name of a canvas: what eventqueue.CheckName refuses, a text with spaces around it, and
// what looks like a uuid, which would hide the canvas that has it.
func CheckCanvasName(name string) error {
	if err := eventqueue.CheckName(name); err != nil {
		return err
	}
	if strings.TrimSpace(name) != name {
		return fmt.Errorf("%q has spaces around it", name)
	}
	if _, err := eventqueue.ParseCanvasID(name); err == nil {
		return fmt.Errorf("%q looks like a uuid: choose a name for people", name)
	}
	return nil
}

// Validate names the first field that cannot be stored.
func (n CanvasName) Validate() error {
	if n.Canvas == (eventqueue.CanvasID{}) {
		return errors.New("canvas_id: is missing")
	}
	if err := CheckCanvasName(n.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	return nil
}
