package check

import (
	"slices"
	"strings"

	"eventsv2/test/oracle"
)

// class is a class of violations, as the verdict counts them.
type class string

// The classes.
const (
	lost       class = "lost"
	stuck      class = "stuck"
	early      class = "early"
	stale      class = "stale_writes"
	duplicates class = "unexplained_duplicates"
	order      class = "order"
	unique     class = "unique"
	limits     class = "limits"
	rates      class = "rates"
	chains     class = "chains"
	other      class = "other"
)

func classes() []class {
	return []class{lost, stuck, early, stale, duplicates, order, unique, limits, rates, chains, other}
}

// alwaysShown reports whether the verdict names a class also when it is empty.
func (c class) alwaysShown() bool {
	return !slices.Contains([]class{order, unique, limits, rates, chains, other}, c)
}

// classOf sorts what the oracle found into the classes of the verdict.
func classOf(v oracle.Violation) class {
	switch {
	case v.Invariant == "I1" && strings.HasPrefix(v.Problem, "stuck"):
		return stuck
	case v.Invariant == "I1", v.Invariant == "I15":
		return lost
	case v.Invariant == "I3":
		return duplicates
	case v.Invariant == "I4", v.Invariant == "I5":
		return stale
	case v.Invariant == "I6":
		return early
	case v.Invariant == "I13":
		return stuck
	case slices.Contains([]class{order, unique, limits, rates, chains}, class(v.Invariant)):
		return class(v.Invariant)
	default:
		return other
	}
}
