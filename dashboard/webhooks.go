package dashboard

import (
	"net/http"

	"eventsv2/internal/view"
	"eventsv2/webhook/received"
)

// sourceRow is a source of webhooks with the line of its requests.
type sourceRow struct {
	view.Source
	Spark chart
}

type webhooksData struct{ Sources []sourceRow }

func (d *dashboard) webhooks(r *http.Request) (string, any, error) {
	if !viewerOf(r).MayReadAll() {
		return "", nil, problem{http.StatusForbidden, "You may not see the sources of webhooks", "They receive for all canvases: it takes the verb read on all of them."}
	}
	sources, err := received.NewReader(d.Store.Schema(), d.Store.Pool()).Sources(r.Context())
	var data webhooksData
	for i := range sources {
		data.Sources = append(data.Sources, sourceRow{view.SourceOf(sources[i]), requestsLine(&sources[i])})
	}
	return "Webhooks and sources", data, err
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
