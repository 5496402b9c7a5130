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
	Pending, OldestDue     string
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
	for i := range p.totals {
		sum.Merge(&p.totals[i].Counts)
	}
	data.Sum = view.CountsOf(sum)
	if data.Pending, data.OldestDue = pendingTexts(p.totals, p.now); data.Pending == "–" && p.relayRuns && !data.Empty {
		data.Pending, data.OldestDue = "0", "none due" // the relay counts once a minute, and writes nothing of what has nothing
	}
	data.Counts, data.Waits, data.Backlog = charts(p.totals, p.now)
	if !data.Empty {
		data.Troubles = d.troubles(p, sum.Failed, who)
	}
	return data
}
