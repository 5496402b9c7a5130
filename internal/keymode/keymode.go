// Package keymode has the modes of unique keys, and what may go with each.
package keymode

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The values of NewEvent.UniqueMode, as the SQL functions have them.
const (
	UntilEnd   = "until_end"
	UntilStart = "until_start"
	Replace    = "replace"
)

// Modes are all of them, the default first.
func Modes() []string { return []string{UntilEnd, UntilStart, Replace} }

// Check names the field of an emit that does not fit, and says why. longest bounds both times.
func Check(hasKey bool, mode string, uniqueFor, maxWait, longest time.Duration) (field string, err error) {
	switch {
	case uniqueFor < 0:
		return "unique_for", fmt.Errorf("%s is negative: use 0 for not beyond the end of the event", uniqueFor)
	case uniqueFor > longest:
		return "unique_for", fmt.Errorf("%s is more than the limit of %s", uniqueFor, longest)
	case mode != "" && !slices.Contains(Modes(), mode):
		return "unique_mode", fmt.Errorf("is %q: use %s, %s or %s", mode, UntilEnd, UntilStart, Replace)
	case !hasKey && (uniqueFor != 0 || mode == UntilStart || mode == Replace):
		return "unique_key", errors.New("is missing: unique_for and unique_mode go with it")
	case uniqueFor != 0 && (mode == UntilStart || mode == Replace):
		return "unique_for", fmt.Errorf("does not go with the mode %s: leave it out, or use %s", mode, UntilEnd)
	case maxWait != 0 && mode != Replace:
		return "max_wait", fmt.Errorf("goes with the mode %s only", Replace)
	case maxWait < 0:
		return "max_wait", fmt.Errorf("%s is negative: use 0 for no bound", maxWait)
	case maxWait > longest:
		return "max_wait", fmt.Errorf("%s is more than the limit of %s", maxWait, longest)
	default:
		return "", nil
	}
}
