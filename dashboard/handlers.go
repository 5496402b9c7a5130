package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/operate"
	"eventsv2/internal/view"
)

type handlerRow struct {
	view.Counts
	Rate, Errors string
	States       []stateRow
	Spark        chart
}

const handlersShown = 100

type handlersData struct {
	Rows []handlerRow
	// Alone are rules for names that begin in some way, of which no handler has counts.
	Alone []view.Rule
	More  int
	For   string
}

func (d *dashboard) handlers(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	rules, err := d.Reader.Rules(r.Context(), filter)
	if err != nil {
		return "", nil, err
	}
	counted, err := d.Reader.Counted(r.Context(), filter, handlersFor)
	if err != nil {
		return "", nil, err
	}
	held, alone := heldOf(rules, counted)
	scopes := ranked(counted, held)
	data := handlersData{Alone: view.All(alone, view.RuleOf), For: fmt.Sprintf("%d minutes", int(handlersFor.Minutes())), More: max(0, len(scopes)-handlersShown)}
	scopes = scopes[:min(len(scopes), handlersShown)]
	minutes, err := d.Reader.MinutesOf(r.Context(), handlersFor, scopes...)
	if err != nil {
		return "", nil, err
	}
	facts := inspect.HandlerFacts{Rules: rules, Minutes: minutes}
	if err := d.readFacts(r, &facts, scopes...); err != nil {
		return "", nil, err
	}
	of, sums := map[eventqueue.Scope][]inspect.Minute{}, map[eventqueue.Scope]inspect.Minute{}
	for i := range minutes {
		of[minutes[i].Scope] = append(of[minutes[i].Scope], minutes[i])
	}
	for _, sum := range inspect.SumMinutes(minutes) {
		sums[sum.Scope] = sum
	}
	for _, scope := range scopes {
		sum := sums[scope]
		sum.Scope = scope // of one that is only held back there are no counts
		row := handlerRow{view.CountsOf(sum), rateOf(&sum, handlersFor), errorsOf(&sum), nil, sparkline(of[scope], sum.AsOf)}
		if row.Canvas != nil { // the sum of others has no state
			row.States = view.All(facts.States(scope), stateRowOf)
		}
		data.Rows = append(data.Rows, row)
	}
	return "Handlers", data, nil
}

// heldOf are the rules that hold back events of the handlers that have counts, also those that are about more of them, and of the
// handlers that have none but are named by a rule. alone are those for names that begin in a way that none of these does.
func heldOf(rules []operate.Rule, counted map[eventqueue.Scope]int64) (held map[eventqueue.Scope]int, alone []operate.Rule) {
	held = map[eventqueue.Scope]int{}
	for _, rule := range rules {
		known := rule.Whole()
		for scope := range counted {
			if rule.Overlaps(operate.RuleScope{Scope: scope}) {
				held[scope]++
				known = true
			}
		}
		switch {
		case known:
		case rule.Prefix:
			alone = append(alone, rule)
		default:
			held[rule.Scope]++
		}
	}
	return held, alone
}

// ranked are the handlers that have counts or are held back: these first, and those with the highest counts.
func ranked(counted map[eventqueue.Scope]int64, held map[eventqueue.Scope]int) []eventqueue.Scope {
	scopes := slices.Collect(maps.Keys(counted))
	for scope := range held {
		if _, known := counted[scope]; !known {
			scopes = append(scopes, scope)
		}
	}
	slices.SortFunc(scopes, func(a, b eventqueue.Scope) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(counted[b], counted[a]),
			slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return scopes
}
