package setup

import (
	"slices"
	"strings"
)

// NotifierVariables holds the environment variables of one notifier.
type NotifierVariables struct {
	// Meaning is its sentence in the description of NOTIFIER. "": the
	// description itself names it.
	Meaning string

	// New returns a pointer to a struct whose fields are the notifier's own variables,
	// with the tags of Config's. They are read when NOTIFIER names it. nil: it has none.
	New func() any
}

// notifiers are the values of NOTIFIER.
var notifiers = map[string]NotifierVariables{}

// RegisterNotifier adds a value of NOTIFIER, before Load and Table are called.
func RegisterNotifier(name string, variables NotifierVariables) { notifiers[name] = variables }

// NotifierNames lists names of notifiers for a message, such as pubsub, postgres or memory:
// from z to a, which puts the one that most programs use before those that need no server.
func NotifierNames[S ~string](names []S) string {
	var text []string
	for _, name := range slices.Backward(slices.Sorted(slices.Values(names))) {
		text = append(text, string(name))
	}
	if len(text) < 2 {
		return strings.Join(text, "")
	}
	last := len(text) - 1
	return strings.Join(text[:last], ", ") + " or " + text[last]
}
