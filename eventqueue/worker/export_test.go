package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/machine"
)

// RequeueAfter is the way of an outcome to the notifier: whether its
// notification goes back, and after which wait.
func RequeueAfter(out Outcome) (after time.Duration, requeue bool) {
	a := answerTo(delivery{}, out)
	return roundUp(a.after), a.requeue
}

// Rechecks are the waits of a worker.
type Rechecks = rechecks

// RechecksOf returns the waits of a worker that has claimed nothing yet.
func RechecksOf(w *Worker) *Rechecks {
	return &rechecks{part: part{config: &w.config}, unknown: &unknown{}}
}

// Recheck returns the wait before the next try of an event.
func (r *rechecks) Recheck(label machine.Label, facts machine.Facts) time.Duration {
	return r.recheck(label, 1, &facts)
}

// EndOf returns the end written for a run that returned err.
func EndOf(retries int, policy eventqueue.Policy, err error) Completion {
	return EndOfSnoozed(retries, 0, policy, err)
}

// EndOfSnoozed is EndOf for one that has been snoozed so often in a row.
func EndOfSnoozed(retries, snoozes int, policy eventqueue.Policy, err error) Completion {
	x := &execution{
		run:    eventqueue.Run{Event: eventqueue.Event{Retries: retries}, Snoozes: snoozes},
		policy: policy.WithDefaults(),
		began:  time.Now(),
	}
	return x.decideRun(verdictOf(err, nil), err).completion
}

// KeptAnswers hands so many acknowledgements in, which nobody sends, and returns the
// events of those that are kept.
func MaxAnswers(n int) (kept []eventqueue.EventID) {
	as := newAnswers(nil, nil, newAnswering(), zap.NewNop())
	for i := range n {
		as.put(answer{delivery: delivery{Delivery: eventqueue.Delivery{Notification: eventqueue.Notification{Event: eventqueue.EventID(i)}, AckID: "a"}}})
	}
	for _, a := range as.acks.takeNow(nil, n) {
		kept = append(kept, a.delivery.Event)
	}
	return kept
}

// RoundRoughly groups delays.
func RoundRoughly(d time.Duration) time.Duration { return roundRoughly(d) }

// TakeBounded takes slots of a worker that may use fewer than it has, and gives
// back some of them as unused. It returns how many it took, and how many are free
// and may be used after that.
func TakeBounded(ctx context.Context, free, bound, unused int) (taken, slotsFree, left int, err error) {
	s := newSlots(free)
	s.bound = newBudget(bound, func() {})
	if taken, err = s.take(ctx, free); err != nil {
		return taken, s.free, s.bound.left, err
	}
	s.give(unused)
	s.vacate(vacated{ran: taken - unused})
	return taken, s.free, s.bound.left, nil
}

// ReportsAtTheStop reports whether a worker that begins no more runs still reports those that
// have begun under an approximate limit.
func ReportsAtTheStop(ctx context.Context, begun int) bool {
	r := newRates(begun)
	if begun > 0 {
		r.ran[eventqueue.Scope{}] = begun
	}
	r.close()
	return r.wait(ctx)
}

// ReportsUnasked reports whether a worker that has run events under an approximate limit
// reports them before ctx ends, although their claim has not woken the reporter.
func ReportsUnasked(ctx context.Context, begun int, woken bool) bool {
	r := newRates(begun)
	r.ran[eventqueue.Scope{}] = begun
	if woken {
		r.wake()
	}
	return r.wait(ctx)
}
