package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// ringer is the notifier as a process sees it.
type ringer struct{ p *process }

var _ eventqueue.Notifier = ringer{}

func (r ringer) do(ctx context.Context, op, key string, ready func() time.Time, f func() (string, error)) error {
	return r.p.do(ctx, call{to: notifying, op: op, key: key, ready: ready}, f)
}

// Publish implements eventqueue.Publisher.
func (r ringer) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	done := false
	err := r.do(ctx, "Publish", eventsOf(notifications), nil, func() (string, error) {
		done = true
		r.p.w.notifier.publish(notifications)
		r.p.w.notified(r.p, oracle.Published, notifications, false)
		return "", nil
	})
	if err != nil {
		r.p.w.publishFailed(r.p, notifications, done)
	}
	return err
}

// Pull implements eventqueue.Receiver.
func (r ringer) Pull(ctx context.Context, most int) ([]eventqueue.Delivery, error) {
	return r.pull(ctx, most, r.p.w.notifier.due)
}

func (r ringer) pull(ctx context.Context, most int, ready func() time.Time) (pulled []eventqueue.Delivery, err error) {
	w := r.p.w
	err = r.do(ctx, "Pull", fmt.Sprint(most), ready, func() (string, error) {
		pulled = w.notifier.pull(most, w.mayBeAbandoned())
		notifications := make([]eventqueue.Notification, len(pulled))
		for i, d := range pulled {
			notifications[i] = d.Notification
		}
		w.notified(r.p, oracle.Delivered, notifications, false)
		return eventsOf(notifications), nil
	})
	return onlyIf(pulled, err), err
}

// Ack implements eventqueue.Receiver.
func (r ringer) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return r.answer(ctx, "Ack", deliveries, r.p.w.notifier.ack)
}

// Requeue implements eventqueue.Receiver.
func (r ringer) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	return r.answer(ctx, requeueOp(after), deliveries, func(d eventqueue.Delivery) { r.p.w.notifier.requeue(d, after) })
}

func requeueOp(after time.Duration) string {
	if after == leaseExtension {
		return "Extend leases"
	}
	return fmt.Sprint("Requeue after ", after)
}

// answer is one request. The notifier may take it and have nothing of it, for some of the deliveries:
// they come again when their leases end.
func (r ringer) answer(ctx context.Context, op string, deliveries []eventqueue.Delivery, act func(eventqueue.Delivery)) error {
	var key strings.Builder
	deliveries = inOrder(deliveries)
	for _, d := range deliveries {
		fmt.Fprintf(&key, " %s/%s", d.Event, d.AckID)
	}
	return r.do(ctx, op, key.String(), nil, func() (string, error) {
		w, lost := r.p.w, 0
		for _, d := range deliveries {
			if w.attacking && w.dice.chance(w.intensity.forget) {
				lost++
				continue
			}
			act(d)
		}
		if lost == 0 {
			return "", nil
		}
		w.faults["answer to a notification taken, and lost"] += lost
		return fmt.Sprint(lost, " forgotten"), nil
	})
}

// inOrder are the deliveries in an order that does not depend on the scheduler of Go.
func inOrder(deliveries []eventqueue.Delivery) []eventqueue.Delivery {
	return slices.SortedFunc(slices.Values(deliveries), func(a, b eventqueue.Delivery) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.AckID, b.AckID))
	})
}

// leaseExtension is the lease that workers ask for. The notifier's is a little
// longer; and as answers are rounded to seconds, this one tells an extension from
// an answer.
const leaseExtension = leaseTime - 10*time.Millisecond
