package eventctl

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// refusal is an event that retry or requeue has refused, and not changed.
type refusal struct {
	ID     eventqueue.EventID `json:"id"`
	Reason string             `json:"reason"`
}

// refusedError names the events that were refused; nil when there are none.
func refusedError(what string, refused []refusal) error {
	if len(refused) == 0 {
		return nil
	}
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = fmt.Sprintf("event %s %s", r.ID, r.Reason)
	}
	return notFound("%s: %s", what, strings.Join(lines, "; "))
}

// databaseRefuses is the reason of a refusal that comes from a trigger or a constraint, for example.
func databaseRefuses(err error) string {
	return "cannot be changed, because the database refuses: " + err.Error()
}
