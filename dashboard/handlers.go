package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/control"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

type handlerRow struct {
	inspect.Minute
	Rate, WaitP99, RunP99, Errors string
	Rules                         []control.Rule
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
	minutes, rules, err := d.readHandlers(r.Context(), filter)
	if err != nil {
		return "", nil, err
	}
	sums := withRules(inspect.SumMinutes(minutes), rules)
	held := map[eventqueue.Scope][]control.Rule{}
	for i := range rules {
		held[rules[i].Scope] = append(held[rules[i].Scope], rules[i])
	}
	slices.SortStableFunc(sums, func(a, b inspect.Minute) int {
		return cmp.Or(cmp.Compare(len(held[b.Scope]), len(held[a.Scope])), cmp.Compare(b.Events(), a.Events()))
	})
	data := handlersData{For: fmt.Sprintf("%d minutes", int(handlersFor.Minutes())), More: max(0, len(sums)-handlersShown)}
	of := map[eventqueue.Scope][]inspect.Minute{}
	for i := range minutes {
		of[minutes[i].Scope] = append(of[minutes[i].Scope], minutes[i])
	}
	for _, sum := range sums[:min(len(sums), handlersShown)] {
		row := handlerRow{Minute: sum, Rules: held[sum.Scope], Others: sum.Canvas == eventqueue.CanvasID{}, Rate: rateOf(&sum, handlersFor), Errors: errorsOf(&sum),
			WaitP99: quantile(sum.Wait, 0.99), RunP99: quantile(sum.Run, 0.99), Spark: sparkline(of[sum.Scope], sum.AsOf)}
		data.Rows = append(data.Rows, row)
	}
	return "Handlers", data, nil
}

func (d *dashboard) readHandlers(ctx context.Context, filter inspect.Filter) ([]inspect.Minute, []control.Rule, error) {
	minutes, err := d.Reader.Minutes(ctx, filter, handlersFor, inspect.PerMinute)
	if err != nil {
		return nil, nil, err
	}
	rules, err := d.Reader.Rules(ctx, filter)
	return minutes, rules, err
}

// withRules adds handlers that a rule holds back and that have no counts.
func withRules(sums []inspect.Minute, rules []control.Rule) []inspect.Minute {
	known := map[eventqueue.Scope]bool{}
	for i := range sums {
		known[sums[i].Scope] = true
	}
	for i := range rules {
		if !known[rules[i].Scope] {
			known[rules[i].Scope] = true
			sums = append(sums, inspect.Minute{Counts: minutes.Counts{Scope: rules[i].Scope}})
		}
	}
	return sums
}
