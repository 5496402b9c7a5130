package dashboard

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
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
	case inspect.HandlerUnserved, inspect.HandlerAway:
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

// readFacts reads the limits of some handlers, and the workers.
func (d *dashboard) readFacts(r *http.Request, facts *inspect.HandlerFacts, scopes ...eventqueue.Scope) (err error) {
	if facts.Limits, err = d.Reader.LimitsOfHandlers(r.Context(), scopes...); err != nil {
		return err
	}
	if facts.Rates, err = d.Reader.RatesOfHandlers(r.Context(), scopes...); err != nil {
		return err
	}
	workers, waiting, err := d.Reader.WaitingModifiers(r.Context(), scopes...)
	facts.Serving, facts.Waiting = inspect.ServingOf(workers), waiting
	return err
}

// ratesOf are rate limits with their use, the fullest first.
func ratesOf(limits []operate.RateStatus) []view.RateStatus {
	rows := view.All(limits, view.RateStatusOf)
	slices.SortStableFunc(rows, func(a, b view.RateStatus) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Part(), a.Part()))
	})
	return rows
}

// handlerPath is the page of a handler.
func handlerPath(scope eventqueue.Scope) string {
	return "/handler?" + url.Values{"canvas": {scope.Canvas.String()}, "module": {scope.Module}, "name": {scope.Name}}.Encode()
}

func handlerName(scope eventqueue.Scope) string { return line(scope.Module) + " / " + line(scope.Name) }
