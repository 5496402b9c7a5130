package eventctl

import (
	"strings"

	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

// refusedError names the events that were refused; nil when there are none.
func refusedError(what string, refused []view.Refusal) error {
	if len(refused) == 0 {
		return nil
	}
	return notFound("%s: %s", what, strings.Join(view.All(refused, view.Refusal.String), "; "))
}

// refusalOf says why an event was not changed, with the error of a database that refuses it.
func refusalOf(r operate.Changed) view.Refusal {
	refused := view.RefusalOf(r)
	if r.Result == operate.ChangeRefused {
		refused.Reason += ": " + r.Err.Error()
	}
	return refused
}
