package dashboard

import (
	"context"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
)

func (d *dashboard) readSituation(ctx context.Context, of asked, pulse inspect.Pulse, charted span) (s situation, err error) {
	s.relayRuns, s.foreign, s.counted, s.span = pulse.RelayRuns, pulse.Foreign, pulse.CountedSince, charted
	if pulse.QueueFills() {
		s.queueUsage = pulse.QueueUsage
		if s.queueHolder, err = d.Reader.QueueHolder(ctx); err != nil {
			return s, err
		}
	}
	since := charted.read()
	if charted.byHour() {
		if s.hours, err = d.Reader.HourTotals(ctx, of.all, of.canvases, since); err != nil {
			return s, err
		}
		since = afterHours(s.hours)
	}
	if s.totals, err = d.Reader.Totals(ctx, of.all, of.canvases, since); err != nil {
		return s, err
	}
	if s.activities, err = d.Reader.Activities(ctx, of.all, of.canvases); err != nil {
		return s, err
	}
	if s.workers, err = d.Reader.Workers(ctx); err != nil {
		return s, err
	}
	var filter inspect.Filter
	if !of.all && len(of.canvases) == 1 {
		filter.Canvas = &of.canvases[0]
	}
	s.rules, err = d.Reader.Rules(ctx, filter)
	return s, err
}

// standstill finds out why no run has ended although something is due; nil if that is not so. Only then it sends
// statements.
func (d *dashboard) standstill(ctx context.Context, p part) (*standstill, error) {
	due, quiet := p.due(), p.quietFor()
	if len(due) == 0 || quiet < standsAfter || *due[0].OldestDue < standsAfter || live(p.workers) == 0 {
		return nil, nil
	}
	s := &standstill{For: quiet, Scope: due[0].Scope, DueFor: *due[0].OldestDue}
	id, _, err := d.Store.OldestDue(ctx, s.Scope)
	if err != nil || id == 0 {
		return s, err
	}
	explained, err := d.Reader.Explain(ctx, id)
	if err != nil || explained.Shown.Queued == nil {
		return s, err
	}
	s.Event, s.Why, s.Remedy = id, explained.Because().Why, explained.Because().Remedy
	return s, nil
}

// readParts reads what is asked for, with the charts of an hour.
func (d *dashboard) readParts(ctx context.Context, of asked, pulse inspect.Pulse) (map[eventqueue.CanvasID]part, error) {
	s, err := d.readSituation(ctx, of, pulse, spans[0])
	if err != nil {
		return nil, err
	}
	parts := map[eventqueue.CanvasID]part{}
	add := func(canvas *eventqueue.CanvasID, key eventqueue.CanvasID) (err error) {
		p := s.of(canvas)
		p.stands, err = d.standstill(ctx, p)
		parts[key] = p
		return err
	}
	if of.all {
		err = add(nil, eventqueue.CanvasID{})
	}
	for i := 0; err == nil && i < len(of.canvases); i++ {
		err = add(&of.canvases[i], of.canvases[i])
	}
	return parts, err
}

func live(workers []inspect.Worker) (n int) {
	for i := range workers {
		if workers[i].State == inspect.WorkerLive {
			n++
		}
	}
	return n
}
