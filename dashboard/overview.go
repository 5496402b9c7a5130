package dashboard

import (
	"net/http"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/minutes"
	"eventsv2/internal/humantime"
)

type overviewData struct {
	Troubles                             []trouble
	Emitted, Completed, Failed, Retried  int64
	Pending, OldestDue, WaitP50, WaitP99 string
	Counts, Waits, Backlog               chart
	Live                                 int
	Empty                                bool
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

// overviewOf is what the overview of a part shows to a viewer.
func (d *dashboard) overviewOf(p part, who viewer) overviewData {
	data := overviewData{Live: live(p.workers), Pending: "–", OldestDue: "–", Empty: len(p.totals) == 0}
	var wait minutes.Counts
	for i := range p.totals {
		wait.Merge(&p.totals[i].Counts)
	}
	data.Emitted, data.Completed, data.Failed, data.Retried = wait.Emitted, wait.Completed, wait.Failed, wait.Retried
	data.WaitP50, data.WaitP99 = quantile(wait.Wait, 0.5), quantile(wait.Wait, 0.99)
	pending, oldest := lastPending(p.totals, p.now)
	if pending != nil {
		data.Pending, data.OldestDue = count(*pending), "none due"
	} else if p.relayRuns && !data.Empty { // it counts once a minute, and writes nothing of what has nothing
		data.Pending, data.OldestDue = "0", "none due"
	}
	if oldest != nil {
		data.OldestDue = humantime.Age(*oldest)
	}
	data.Counts, data.Waits, data.Backlog = charts(p.totals, p.now)
	if !data.Empty {
		data.Troubles = d.troubles(p, data.Failed, who)
	}
	return data
}
