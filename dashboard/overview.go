package dashboard

import (
	"net/http"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

type overviewData struct {
	Troubles               []trouble
	Sum                    view.Counts
	OldestDue              string
	Counts, Waits, Backlog chart
	Live                   int
	Empty                  bool
	// Stream is where the page gets what is new.
	Stream string
}

func (d *dashboard) overview(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	of := asked{all: filter.Canvas == nil}
	if filter.Canvas != nil {
		of.canvases = []eventqueue.CanvasID{*filter.Canvas}
	}
	pulse, err := d.Reader.Pulse(r.Context())
	if err != nil {
		return "", nil, err
	}
	s, err := d.readSituation(r.Context(), of, pulse)
	if err != nil {
		return "", nil, err
	}
	part := s.of(filter.Canvas)
	if part.stands, err = d.standstill(r.Context(), part); err != nil {
		return "", nil, err
	}
	data := d.overviewOf(part, viewerOf(r))
	if data.Stream = d.Prefix + "/live"; filter.Canvas != nil {
		data.Stream += "?canvas=" + filter.Canvas.String()
	}
	return "Overview", data, nil
}

// overviewOf is the overview of a part for a viewer.
func (d *dashboard) overviewOf(p part, who viewer) overviewData {
	data := overviewData{Live: live(p.workers), Empty: len(p.totals) == 0}
	var sum inspect.Minute
	if sums := inspect.SumMinutes(p.totals); len(sums) > 0 {
		sum = sums[0]
	}
	data.Sum, data.OldestDue = view.CountsOf(sum), oldestDue(&sum)
	data.Counts, data.Waits, data.Backlog = charts(p.totals, p.now)
	if !data.Empty {
		data.Troubles = d.troubles(p, sum.Failed, who)
	}
	return data
}
