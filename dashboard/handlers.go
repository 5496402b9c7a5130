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
)

type handlerRow struct {
	inspect.Minute
	Rate, WaitP99, RunP99, Errors string
	Rules                         []operate.Rule
	Spark                         chart
	Others                        bool
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
	held := map[eventqueue.Scope][]operate.Rule{}
	for i := range rules {
		held[rules[i].Scope] = append(held[rules[i].Scope], rules[i])
	}
	counted, err := d.Reader.Counted(r.Context(), filter, handlersFor)
	if err != nil {
		return "", nil, err
	}
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
		row := handlerRow{Minute: sum, Rules: held[scope], Others: scope.Canvas == eventqueue.CanvasID{}, Rate: rateOf(&sum, handlersFor), Errors: errorsOf(&sum),
			WaitP99: quantile(sum.Wait, 0.99), RunP99: quantile(sum.Run, 0.99), Spark: sparkline(of[scope], sum.AsOf)}
		data.Rows = append(data.Rows, row)
	}
	return "Handlers", data, nil
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
