package worker

import (
	"time"
)

// releaser lets go of deliveries: it acknowledges or requeues them and frees their slots.
type releaser struct {
	slots    *slots // for notified events
	reserved *slots // for events that the worker has found itself; the same as slots when there are few
	answers  *answers
}

// slotsOf are the slots of which a delivery has one.
func (w *releaser) slotsOf(d *delivery) *slots {
	if d.notified() {
		return w.slots
	}
	return w.reserved
}

// letGo acknowledges or requeues a delivery and frees its slot.
func (w *releaser) letGo(d delivery, a answer) {
	if !d.notified() {
		if d.needsNotify && a.requeue {
			w.answers.put(a)
		}
		w.reserved.give(1)
		return
	}
	w.answers.put(a)
	w.slots.give(1)
}

// giveBack requeues notifications that were pulled and whose events were not claimed.
func (w *releaser) giveBack(deliveries []delivery, after time.Duration) {
	for _, d := range deliveries {
		w.answers.put(answer{delivery: d, requeue: true, after: after})
	}
	w.slots.give(len(deliveries))
}
