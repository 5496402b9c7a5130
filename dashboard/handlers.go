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
	Rules        []view.Rule
	Spark        chart
}

const handlersShown = 100

type handlersData struct {
	Rows []handlerRow
	More int
	For  string
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
	held := heldOf(rules, counted)
	scopes := ranked(counted, held)
	data := handlersData{For: fmt.Sprintf("%d minutes", int(handlersFor.Minutes())), More: max(0, len(scopes)-handlersShown)}
	scopes = scopes[:min(len(scopes), handlersShown)]
	minutes, err := d.Reader.MinutesOf(r.Context(), handlersFor, scopes...)
	if err != nil {
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
		data.Rows = append(data.Rows, handlerRow{view.CountsOf(sum), rateOf(&sum, handlersFor), errorsOf(&sum), view.All(held[scope], view.RuleOf), sparkline(of[scope], sum.AsOf)})
	}
	return "Handlers", data, nil
}

// heldOf are the rules that hold back events of the handlers that have counts, also those that are about more of them, and of the
// handlers that have none but are named by a rule.
func heldOf(rules []operate.Rule, counted map[eventqueue.Scope]int64) map[eventqueue.Scope][]operate.Rule {
	held := map[eventqueue.Scope][]operate.Rule{}
	for _, rule := range rules {
		known := false
		for scope := range counted {
			if rule.Overlaps(operate.RuleScope{Scope: scope}) {
				held[scope], known = append(held[scope], rule), true
			}
		}
		if !known && !rule.Whole() {
			held[rule.Scope] = append(held[rule.Scope], rule)
		}
	}
	return held
}

// ranked are the handlers that have counts or are held back: these first, and those with the highest counts.
func ranked(counted map[eventqueue.Scope]int64, held map[eventqueue.Scope][]operate.Rule) []eventqueue.Scope {
	scopes := slices.Collect(maps.Keys(counted))
	for scope := range held {
		if _, known := counted[scope]; !known {
			scopes = append(scopes, scope)
		}
	}
	slices.SortFunc(scopes, func(a, b eventqueue.Scope) int {
		return cmp.Or(cmp.Compare(len(held[b]), len(held[a])), cmp.Compare(counted[b], counted[a]),
			slices.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Module, b.Module), cmp.Compare(a.Name, b.Name))
	})
	return scopes
}
