package dashboard

import (
	"net/http"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// stateRow is a state of a handler.
type stateRow struct {
	State inspect.HandlerState
	Rule  *view.Rule // nil if the state is no rule's
	Why   string
}

func stateRowOf(s inspect.Standing) stateRow {
	row := stateRow{State: s.State, Why: s.Why}
	if s.Rule != nil {
		rule := view.RuleOf(*s.Rule)
		row.Rule = &rule
	}
	return row
}

// Class is the class of a state by which the style sheet colours it.
func (s stateRow) Class() string {
	switch s.State {
	case inspect.HandlerHeld, inspect.HandlerLimited:
		return "paused"
	case inspect.HandlerUnserved:
		return "dead"
	case inspect.HandlerBusy:
		return "running"
	case inspect.HandlerFailing:
		return "failed"
	case inspect.HandlerOpen:
		return "completed"
	default:
		return string(s.State) // that of a rule
	}
}

// readFacts reads the rate limits, of a canvas or, with nil, of all, and the workers.
func (d *dashboard) readFacts(r *http.Request, canvas *eventqueue.CanvasID, facts *inspect.HandlerFacts) (err error) {
	if facts.Rates, err = d.Store.RateLimits(r.Context(), canvas); err != nil {
		return err
	}
	workers, err := d.Reader.Workers(r.Context())
	facts.Serving = inspect.ServingOf(workers)
	return err
}
