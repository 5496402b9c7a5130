package grid

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"eventsv2/eventqueue"
)

const (
	// MaxFileBytes is the size of the largest definition that is read.
	MaxFileBytes = 1 << 20
	// MaxActions is how many actions a grid may have.
	MaxActions = 1000
)

// Module and Modifier belong to the handler key of every event that starts a run. The
// key has the name of the grid.
const (
	Module   = "GRID"
	Modifier = "_"
)

func handlerOf(grid string) eventqueue.HandlerKey {
	return eventqueue.HandlerKey{Module: Module, Name: grid, Modifier: Modifier}
}

// checkName refuses a text that cannot name a grid, an action or one of its slots.
// Names are parts of paths, which have dots between them.
func checkName(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > eventqueue.MaxNameBytes:
		return fmt.Errorf("is %d bytes long: the limit is %d", len(s), eventqueue.MaxNameBytes)
	case strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}):
		return fmt.Errorf("is %q: it may have letters, digits, _ and -", s)
	default:
		return nil
	}
}
