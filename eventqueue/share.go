package eventqueue

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"
)

// How a full worker looks for the events of other canvases: every shareInterval,
// twice as seldom after each look that finds nothing, up to shareSeldom, and
// sooner while there is more to look through than one page.
const (
	shareInterval = time.Second
	shareSeldom   = 4 * time.Second
	shareSoon     = 100 * time.Millisecond
	// shareTakes bounds one look, and shareApart is how many times as long as a
	// look took the next one waits at least: what it costs the database stays
	// small, whatever state the table is in.
	shareTakes = 2 * time.Second
	shareApart = 10
	// spareShare is the part of the slots that is kept for them. A worker with
	// fewer slots keeps none: there, they wait for the next slot that comes free.
	spareShare = 16
	// fullPercent of the slots make a worker full. Some are always on their way
	// between one event and the next.
	fullPercent = 75
)

// share gives every canvas its share of this worker (I15). The doorbell rings in
// its own order: behind a hundred thousand notifications of one canvas, that of
// another's single event is heard last. So while this worker is full, it asks the
// database for runnable events of the canvases that have less in hand than the
// mean, and runs them in slots of their own. A worker that is not full asks
// nothing.
//
// These events are claimed as all others are. Their notifications come later,
// find them gone, and are dropped.
func (w *Worker) share(ctx, work context.Context) {
	wait := newFailureWait(w.config.Jitter)
	interval := shareInterval
	for place := (Scope{}); ctx.Err() == nil; {
		if !w.isFull() {
			interval = shareInterval
			pause(ctx, w.shareRest(interval))
			continue
		}
		began := time.Now()
		looked, err := w.shareOnce(ctx, work, place)
		if err != nil && ctx.Err() == nil {
			w.log.Warn("could not look for events of other canvases", zap.Duration(logWait, wait.next), zap.Error(err))
			wait.pause(ctx)
		} else {
			wait.reset()
		}
		place = looked.next
		interval = min(2*interval, shareSeldom)
		if looked.found > 0 {
			interval = shareInterval
		}
		rest := w.shareRest(interval)
		if looked.more {
			rest = shareSoon
		}
		pause(ctx, max(rest, shareApart*min(time.Since(began), shareTakes)))
	}
}

// shareRest is an interval with jitter.
func (w *Worker) shareRest(interval time.Duration) time.Duration {
	return interval*9/10 + w.config.Jitter(interval/5)
}

// isFull tells whether events wait behind those in hand: a pull brought as many
// as were asked for since the last time, or the slots are taken.
func (w *Worker) isFull() bool {
	full := w.runs.full(max(w.config.Concurrency*fullPercent/100, 1))
	return w.pulledAll.Swap(false) || full
}

// looked is what came of one look.
type looked struct {
	next  Scope // where the next one begins
	found int   // events to run
	more  bool  // there is more behind it than this one took
}

// shareOnce looks once, from the given place on.
func (w *Worker) shareOnce(ctx, work context.Context, place Scope) (looked, error) {
	// Asked before and after: it may take long until a slot is free, and the run
	// that has made it free counts.
	above := w.runs.aboveMean()
	n, err := w.spare.take(ctx, w.config.ClaimBatch)
	if err != nil {
		return looked{next: place}, err
	}
	events, next, err := w.runnable(ctx, place, append(above, w.runs.aboveMean()...))
	if err != nil {
		w.spare.give(n)
		return looked{next: place}, err
	}
	chosen := w.pickEvenly(events, n)
	w.spare.give(n - len(chosen))
	if len(chosen) > 0 {
		if err := w.look(ctx, work, chosen); err != nil {
			w.spare.give(len(chosen))
			return looked{next: next}, err
		}
	}
	return looked{next, len(chosen), len(chosen) == n || next != Scope{}}, nil
}

func (w *Worker) runnable(ctx context.Context, place Scope, except []CanvasID) ([]Event, Scope, error) {
	ctx, cancel := context.WithTimeout(ctx, shareTakes)
	defer cancel()
	return w.store.Runnable(ctx, place, except, w.config.LockTimeout)
}

// pickEvenly takes at most n events that this worker has handlers for, one of
// each canvas in turn.
func (w *Worker) pickEvenly(events []Event, n int) []Delivery {
	byCanvas := map[CanvasID][]Delivery{}
	for _, e := range events {
		if _, known := w.handlers.find(&e); known {
			byCanvas[e.Canvas] = append(byCanvas[e.Canvas], unrung(&e))
		}
	}
	canvases := slices.SortedFunc(maps.Keys(byCanvas), func(a, b CanvasID) int { return slices.Compare(a[:], b[:]) })
	var chosen []Delivery
	for turn := 0; len(chosen) < n; turn++ {
		before := len(chosen)
		for _, canvas := range canvases {
			if waiting := byCanvas[canvas]; turn < len(waiting) && len(chosen) < n {
				chosen = append(chosen, waiting[turn])
			}
		}
		if len(chosen) == before {
			break
		}
	}
	return chosen
}

// unrung is the delivery of an event that was found without a notification:
// there is nothing to answer, and its slot is a spare one.
func unrung(e *Event) Delivery {
	return Delivery{Notification: Notification{Event: e.ID, Canvas: e.Canvas}}
}

// rung tells whether a notifier made the delivery.
func (d *Delivery) rung() bool { return d.AckID != "" }

// slotsOf are the slots of which a delivery has one.
func (w *Worker) slotsOf(d *Delivery) *slots {
	if d.rung() {
		return w.slots
	}
	return w.spare
}

// letGo answers a delivery and frees its slot.
func (w *Worker) letGo(d Delivery, a answer) {
	if !d.rung() {
		if d.unheard && a.requeue {
			w.answers <- a
		}
		w.spare.give(1)
		return
	}
	w.answers <- a
	w.slots.give(1)
}
