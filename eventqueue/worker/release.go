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

// vacate returns the slots of events that were claimed and are over.
func (r *releaser) vacate(slots, reserved vacated) {
	if r.slots == r.reserved {
		slots.ran, slots.unused = slots.ran+reserved.ran, slots.unused+reserved.unused
		reserved = vacated{}
	}
	r.slots.vacate(slots)
	r.reserved.vacate(reserved)
}

// letGo acknowledges or requeues a delivery and frees its slot.
func (r *releaser) letGo(d delivery, a answer) {
	if !d.notified() {
		if d.needsNotify && a.requeue {
			r.answers.put(a)
		}
		r.reserved.give(1)
		return
	}
	r.answers.put(a)
	r.slots.give(1)
}

// letGoAll is letGo for deliveries that are tried again after a while.
func (r *releaser) letGoAll(deliveries []delivery, after time.Duration) {
	var slots, reserved vacated
	var requeues []answer
	for _, d := range deliveries {
		of := &slots
		if !d.notified() {
			of = &reserved
		}
		of.unused++
		if d.notified() || d.needsNotify {
			requeues = append(requeues, answer{delivery: d, requeue: true, after: after})
		}
	}
	r.answers.putRequeues(requeues)
	r.vacate(slots, reserved)
}

// giveBack requeues notifications that were pulled and whose events were not claimed.
func (r *releaser) giveBack(deliveries []delivery, after time.Duration) {
	requeues := make([]answer, len(deliveries))
	for i, d := range deliveries {
		requeues[i] = answer{delivery: d, requeue: true, after: after}
	}
	r.answers.putRequeues(requeues)
	r.slots.give(len(deliveries))
}
