package dashboard

import (
	"net/http"
	"strings"

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
	// Empty reports whether nothing was counted in the last hour, and Charted whether something was in the time of the charts.
	Empty, Charted bool
	Spans          []spanLink
	// Stream is where the page gets what is new; empty: it is read again by and by.
	Stream string
}

// Renews is how often the page is read again, in seconds.
func (o overviewData) Renews() int {
	if o.Stream == "" {
		return 60
	}
	return 0
}

func (d *dashboard) overview(r *http.Request) (string, any, error) {
	filter, err := d.filter(r)
	if err != nil {
		return "", nil, err
	}
	charted, err := spanOf(r)
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
	s, err := d.readSituation(r.Context(), of, pulse, charted)
	if err != nil {
		return "", nil, err
	}
	part := s.of(filter.Canvas)
	if part.stands, err = d.standstill(r.Context(), part); err != nil {
		return "", nil, err
	}
	data := d.overviewOf(part, viewerOf(r), filter.Canvas)
	if charted.length == shownFor {
		if data.Stream = d.Prefix + "/live"; filter.Canvas != nil {
			data.Stream += "?canvas=" + filter.Canvas.String()
		}
	}
	return "Overview", data, nil
}

// overviewOf is the overview of a part, which is that of a canvas or of all, for a viewer.
func (d *dashboard) overviewOf(p part, who viewer, canvas *eventqueue.CanvasID) overviewData {
	data := overviewData{Live: live(p.workers), Empty: len(p.totals) == 0, Charted: len(p.charted) > 0}
	path := d.Prefix + "/?"
	if canvas != nil {
		path += "canvas=" + canvas.String() + "&"
	}
	data.Spans = p.span.links(path)
	var sum inspect.Minute
	if sums := inspect.SumMinutes(p.totals); len(sums) > 0 {
		sum = sums[0]
	}
	data.Sum, data.OldestDue = view.CountsOf(sum), oldestDue(&sum)
	data.Counts, data.Waits, data.Backlog = charts(p.charted, p.span.axis(p.now, p.counted))
	if !data.Empty {
		data.Troubles = d.troubles(p, sum.Failed, who)
	}
	return data
}

// spanOf returns the span that an address names.
func spanOf(r *http.Request) (span, error) {
	name := r.URL.Query().Get("range")
	if name == "" {
		return spans[0], nil
	}
	names := make([]string, len(spans))
	for i, s := range spans {
		if names[i] = s.name; s.name == name {
			return s, nil
		}
	}
	return span{}, problem{http.StatusBadRequest, "There is no such range", "A range of the charts is one of " + strings.Join(names, ", ") + "."}
}
