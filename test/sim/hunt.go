package sim

import (
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// hunt kills a worker that runs an event of one of them and has a turn of a canvas or a
// handler with it, as soon as there is one, and not after so many looks.
func (n nemesis) hunt(claims int) {
	w := n.w
	limited := map[eventqueue.EventID]bool{}
	for _, id := range w.tables.limited() {
		limited[id] = true
	}
	for _, row := range w.tables.rows() {
		if holder := w.holder(row.ID); limited[row.ID] && row.Locked && slices.Contains(heldJobs, row.Name) && holder != nil {
			w.note("nemesis: kill %s, which runs %s", holder.name, row.ID)
			w.faults["worker killed with a turn, and its handler paused for minutes"]++
			w.hunted.Store(true)
			n.kill(holder)
			return
		}
	}
	if claims == 0 {
		w.hunted.Store(true)
		return
	}
	n.later(100*time.Millisecond, "", func() { n.hunt(claims - 1) })
}

// holder is the worker that claimed an event last, when it lives.
func (w *world) holder(id eventqueue.EventID) *process {
	for i := len(w.history.Records) - 1; i >= 0; i-- {
		if r := &w.history.Records[i]; r.Kind == oracle.Claimed && r.Event == id {
			for _, p := range w.workers {
				if p.name == r.Actor && !p.dead && !p.frozen {
					return p
				}
			}
			return nil
		}
	}
	return nil
}
