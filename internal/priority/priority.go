// Package priority has the priorities of events.
package priority

import "fmt"

// The values of NewEvent.Priority, as the database and every way in spell them. Normal may be left out
// everywhere, and then the database has NULL.
const (
	High   = "high"
	Normal = "normal"
	Low    = "low"
)

// All are all of them.
func All() []string { return []string{High, Normal, Low} }

// Check says what is wrong with a priority.
func Check(s string) error {
	switch s {
	case High, Normal, Low, "":
		return nil
	default:
		return fmt.Errorf("is %q: use %s, %s or %s", s, High, Normal, Low)
	}
}

// Stored is a priority as the database has it: nil for a normal one.
func Stored(s string) *string {
	if s == High || s == Low {
		return &s
	}
	return nil
}
