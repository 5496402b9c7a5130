package dashboard

import (
	"cmp"
	"net/http"
	"slices"

	"eventsv2/webhook"
	"eventsv2/webhook/received"
)

// sourceRow is a source of webhooks with what it has received.
type sourceRow struct {
	received.Source
	HourReceived, HourRefused, DayReceived, DayRefused int64
	// Reasons are why requests of the day were refused, the most frequent first.
	Reasons []reasonCount
	Spark   chart
}

type reasonCount struct {
	Outcome   webhook.Outcome
	Hour, Day int64
}

type webhooksData struct{ Sources []sourceRow }

func (d *dashboard) webhooks(r *http.Request) (string, any, error) {
	if !viewerOf(r).MayReadAll() {
		return "", nil, problem{http.StatusForbidden, "You may not see the sources of webhooks", "They receive for all canvases: it takes the verb read on all of them."}
	}
	sources, err := received.NewReader(d.Store.Schema(), d.Store.Pool()).Sources(r.Context())
	var data webhooksData
	for i := range sources {
		data.Sources = append(data.Sources, rowOfSource(&sources[i]))
	}
	return "Webhooks and sources", data, err
}

func rowOfSource(s *received.Source) sourceRow {
	row := sourceRow{Source: *s, Spark: requestsLine(s),
		HourReceived: received.Sum(s.Hour, false) + received.Sum(s.Hour, true), HourRefused: received.Sum(s.Hour, true),
		DayReceived: received.Sum(s.Day, false) + received.Sum(s.Day, true), DayRefused: received.Sum(s.Day, true)}
	for outcome, n := range s.Day {
		if outcome.Refused() {
			row.Reasons = append(row.Reasons, reasonCount{outcome, s.Hour[outcome], n})
		}
	}
	slices.SortFunc(row.Reasons, func(a, b reasonCount) int {
		return cmp.Or(cmp.Compare(b.Day, a.Day), cmp.Compare(a.Outcome, b.Outcome))
	})
	return row
}

// requestsLine draws the requests of a day, and those of them that were refused.
func requestsLine(s *received.Source) chart {
	all, refused, high := make([]float64, received.Slots), make([]float64, received.Slots), 1.0
	for i := range all {
		refused[i] = float64(s.RefusedBySlot[i])
		all[i] = refused[i] + float64(s.BySlot[i])
		high = max(high, all[i])
	}
	y := func(v float64) float64 { return 22 - 20*v/high }
	c := chart{Width: 96, Height: 24, Lines: []curve{{Name: "requests", Class: "s1", Points: linePoints(all, y, 1, 94)}}}
	if received.Sum(s.Day, true) > 0 {
		c.Lines = append(c.Lines, curve{Name: "refused", Class: "s4", Points: linePoints(refused, y, 1, 94)})
	}
	return c
}
