package sim

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/operate"
)

// newChanger returns what an operator changes waiting events with.
func (p *process) newChanger() *operate.Changer {
	changer, err := operate.NewChanger(p.store(), p.queue)
	if err != nil {
		panic(err)
	}
	return changer
}

// changeSelected changes the events of a filter, as operate.Operations do.
func (p *process) changeSelected(ctx context.Context, filter operate.EventFilter, change func(ctx context.Context, ids ...eventqueue.EventID) ([]operate.Changed, error)) {
	last, err := p.store().LastQueued(ctx)
	if err != nil {
		return
	}
	ids, _, err := p.store().Select(ctx, filter, 0, last, selectPage)
	if err != nil {
		return
	}
	for piece := range slices.Chunk(ids, operate.MaxChangeEvents) {
		if _, err := change(ctx, piece...); err != nil {
			return
		}
	}
}

// selectPage is more events than there are.
const selectPage = 5000

// changeEvents cancels, edits or requeues some events, or those of a filter. What fails may have
// happened, or half of it.
func (p *process) changeEvents(ctx context.Context, c *operate.Changer, d dice) {
	ids, filter := p.drawEvents(d), drawFilter(d)
	byFilter, why := d.chance(0.4), operate.Cancellation{Reason: "simulated", Actor: p.name}
	switch kind := d.IntN(3); {
	case kind == 0 && byFilter:
		filter.NewerThan = d.between(time.Second, 20*time.Second) // so that the others are left to the workers
		p.changeSelected(ctx, filter, func(ctx context.Context, ids ...eventqueue.EventID) ([]operate.Changed, error) {
			return c.Cancel(ctx, why, ids...)
		})
	case kind == 0:
		_, _ = c.Cancel(ctx, why, ids...)
	case kind == 1 && byFilter:
		edit := p.drawEdit(d)
		p.changeSelected(ctx, filter, func(ctx context.Context, ids ...eventqueue.EventID) ([]operate.Changed, error) {
			return c.Edit(ctx, edit, ids...)
		})
	case kind == 1:
		_, _ = c.Edit(ctx, p.drawEdit(d), ids...)
	case byFilter:
		filter.State = []operate.EventState{"", operate.StateDelayed, operate.StateExpired, operate.StateWaiting}[d.IntN(4)]
		p.changeSelected(ctx, filter, c.Requeue)
	default:
		_, _ = c.Requeue(ctx, ids...)
	}
}

// drawEvents draws some events of plain handlers, and now and then one that has ended, or never was.
func (p *process) drawEvents(d dice) (ids []eventqueue.EventID) {
	var waiting, ended []eventqueue.EventID
	for _, row := range p.w.tables.rows() {
		if row.Module == "WORKER" && row.Name != foreign {
			waiting = append(waiting, row.ID)
		}
	}
	for _, row := range p.w.tables.log() {
		if row.Module == "WORKER" {
			ended = append(ended, row.ID)
		}
	}
	for range 1 + d.IntN(4) {
		if len(waiting) > 0 {
			ids = append(ids, waiting[d.IntN(len(waiting))])
		}
	}
	if len(ended) > 0 && d.chance(0.2) {
		ids = append(ids, ended[d.IntN(len(ended))])
	}
	if len(ids) == 0 {
		return []eventqueue.EventID{forgedFrom + 1}
	}
	return ids
}

func drawFilter(d dice) operate.EventFilter {
	f := operate.EventFilter{Module: "WORKER", Name: jobs[d.IntN(len(jobs))]}
	if d.chance(0.7) {
		f.Canvas = &eventqueue.CanvasID{byte(1 + d.IntN(3))}
	}
	return f
}

// drawEdit draws a new value, a new time, or both. Handlers emit nothing for such a value.
func (p *process) drawEdit(d dice) (edit operate.Edit) {
	kind := d.IntN(3)
	if kind > 0 {
		p.w.mu.Lock()
		p.w.serial++
		serial := p.w.serial
		p.w.mu.Unlock()
		value, err := json.Marshal(payload{Serial: serial, Depth: 1})
		if err != nil {
			panic(err)
		}
		edit.Value = value
	}
	switch {
	case kind == 1:
	case d.chance(0.3):
		edit.DelayUntil = time.Now().Add(d.between(-time.Minute, 2*time.Minute)).Truncate(time.Microsecond)
	default:
		delay := d.between(0, 30*time.Second).Truncate(time.Microsecond)
		edit.Delay = &delay
	}
	return edit
}
