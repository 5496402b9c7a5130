package eventqueue

import (
	"context"
	"encoding/json"
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
		run:    Run{Event: Event{Retries: retries}},
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

// TakeBounded takes slots of a worker that may use fewer than it has, and gives
// back some of them as unused. It returns how many it took, and how many are free
// and may be used after that.
func TakeBounded(ctx context.Context, free, bound, unused int) (taken, slotsFree, left int, err error) {
	s := newSlots(free)
	s.bound = newAllowance(bound, func() {})
	if taken, err = s.take(ctx, free); err != nil {
		return taken, s.free, s.bound.left, err
	}
	s.give(unused)
	s.ended(taken - unused)
	return taken, s.free, s.bound.left, nil
}

// Split takes an array or an object apart as typed events are read, and returns
// what is behind it.
func Split(text []byte) (items []json.RawMessage, members map[string]json.RawMessage, rest string) {
	c := cursor{text: text}
	if c.peek() == '[' {
		for range c.parts {
			items = append(items, c.value())
		}
		return items, nil, string(text[c.at:])
	}
	members = map[string]json.RawMessage{}
	for range c.parts {
		name, _ := c.name()
		members[name] = c.value()
	}
	return nil, members, string(text[c.at:])
}

// Waits are how long events wait that were refused.
func Waits(a RateAnswer, refused int, jitter func(time.Duration) time.Duration) []time.Duration {
	return a.waits(refused, jitter)
}

// TellsAtTheStop tells whether a worker that lets nothing more run still tells of what
// has begun under an approximate limit.
func TellsAtTheStop(ctx context.Context, begun int) bool {
	r := newRates(begun)
	if begun > 0 {
		r.ran[Scope{}] = begun
	}
	r.close()
	return r.wait(ctx)
}
