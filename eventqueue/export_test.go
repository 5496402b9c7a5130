package eventqueue

import (
	"time"

	"eventsv2/eventqueue/machine"
)

// RequeueAfter is the way of an outcome to the notifier: whether its
// notification goes back, and after which wait.
func RequeueAfter(out Outcome) (after time.Duration, requeue bool) {
	a := answerTo(Delivery{}, out)
	return roundUp(a.after), a.requeue
}

// LookAgain is the wait before the next look at an event.
func (w *Worker) LookAgain(label machine.Label, facts machine.Facts) time.Duration {
	return w.lookAgain(label, &facts)
}

// EndOf is what is written about a run of an event that returned err.
func EndOf(retries int, policy Policy, err error) End {
	x := &execution{
		run:    &Run{Event: Event{Retries: retries}},
		policy: policy.withDefaults(),
		began:  time.Now(),
	}
	return x.finished(verdictOf(err, false), err).end
}

// Find is the handler that would run an event.
func (hs *Handlers) Find(e Event) (Handler, bool) {
	r, ok := hs.find(&e)
	return r.handler, ok
}

// Registered is what a worker tells the claim about its handlers.
func (hs *Handlers) Registered() Known { return hs.known() }
