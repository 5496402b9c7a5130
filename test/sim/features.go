package sim

import (
	"context"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/internal/keymode"
	"eventsv2/internal/priority"
)

// drawFeatures draws what a seed has beside the plain queue. Its dice are its own.
func (w *world) drawFeatures() {
	d := newDice(w.seed, "features")
	w.unique, w.chains, w.byHand, w.forges, w.falls = d.chance(0.4), d.chance(0.4), d.chance(0.4), d.chance(0.5), d.chance(0.5)
	w.lastSilence = w.falls && d.chance(0.6)
	if d.chance(0.4) {
		w.rates = 1 + d.IntN(2)
		for range 2 + d.IntN(3) {
			w.mustLimitRate(drawRate(d))
		}
	}
	w.changes = d.chance(0.6)
	if w.refuses = d.chance(0.5); w.refuses {
		w.tables.exec(`CREATE TRIGGER sim_refuse BEFORE UPDATE OR DELETE ON events_v2 FOR EACH ROW EXECUTE FUNCTION sim.refuse()`)
	}
	w.lastRefusals = w.refuses && !w.lastSilence && d.chance(0.5)
	w.modes = d.chance(0.4)
	w.grids = d.chance(0.4)
	w.publishes = d.chance(0.4)
	w.priorities = d.chance(0.4)
}

// uniqueKeys are those of some of the events.
var uniqueKeys = []string{"once", "twice"}

// drawMode gives an event a key that stands for it only while it waits. Those that replace each other have one handler and one
// ordering key.
func drawMode(d dice, e *eventqueue.NewEvent) {
	e.Canvas, e.Name = eventqueue.CanvasID{1}, jobs[d.IntN(2)]
	e.Delay = d.between(0, 20*time.Second)
	if d.chance(0.4) {
		e.UniqueKey, e.UniqueMode = "soon", keymode.UntilStart
		return
	}
	e.UniqueKey, e.UniqueMode = e.Name+" newest", keymode.Replace
	if d.chance(0.3) {
		e.OrderingKey = groupKeys[0]
		e.UniqueKey += " of " + e.OrderingKey
	}
	if e.MaxWait = d.between(time.Second, 30*time.Second); d.chance(0.3) {
		e.MaxWait = 0
	}
}

// drawPriority gives some events a priority.
func (w *world) drawPriority(d dice, e *eventqueue.NewEvent) {
	if d.chance(0.5) {
		return
	}
	e.Priority = []string{priority.High, priority.Low}[d.IntN(2)]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults["event of "+e.Priority+" priority"]++
}

// insertRows writes rows with nothing but SQL, with whatever values the table lets in.
func (p *process) insertRows(ctx context.Context, d dice) {
	now := time.Now()
	rows := make([]insertedRow, 1+d.IntN(3))
	for i := range rows {
		r := &rows[i]
		r.Canvas, r.Module, r.Name, r.Modifier = eventqueue.CanvasID{byte(d.IntN(4))}, "WORKER", jobs[d.IntN(len(jobs))], "_"
		if d.chance(0.1) {
			r.Name = foreign
		}
		r.Value = []string{"", "null", "no JSON", `"ä€😀"`, "{}"}[d.IntN(5)]
		if d.chance(0.3) {
			r.Retries = []int32{1, 2, 4, 1_000_000}[d.IntN(4)]
		}
		switch d.IntN(5) {
		case 0:
			r.DelayUntil = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Hour)
		case 1:
			r.DelayUntil = now.Add(d.between(-time.Minute, time.Minute)).Truncate(time.Microsecond)
		case 2:
			if d.chance(0.2) {
				r.DelayUntil = time.Date(294276, 12, 31, 0, 0, 0, 0, time.UTC)
			}
		}
		if d.chance(0.3) {
			r.EnqueuedAt = now.Add(d.between(-100*365*24*time.Hour, 10*time.Second)).Truncate(time.Microsecond)
		}
		if d.chance(0.3) {
			r.LockedAt = now.Add(d.between(-2*lockTimeout, lockTimeout)).Truncate(time.Microsecond)
		}
	}
	_ = p.store().insertByHand(ctx, rows) // what fails is the history's to say
}

// hasWork reports whether anything is left that could run, now or within what is
// simulated.
func (w *world) hasWork() bool {
	for _, row := range w.tables.rows() {
		if row.Name != foreign && row.DelayUntil.Before(w.never()) {
			return true
		}
	}
	return false
}
