package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/test/oracle"
)

// ringer is the broker as a process sees it.
type ringer struct{ p *process }

var _ eventqueue.Notifier = ringer{}

func (r ringer) do(ctx context.Context, op, key string, ready func() time.Time, f func() (string, error)) error {
	return r.p.do(ctx, call{to: broker, op: op, key: key, ready: ready}, f)
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
	r.send(ctx, "Ack", deliveries, r.p.w.notifier.ack)
	return nil
}

// Requeue implements eventqueue.Receiver.
func (r ringer) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	requeue := func(d eventqueue.Delivery) { r.p.w.notifier.requeue(d, after) }
	if after != leaseExtension {
		r.send(ctx, fmt.Sprint("Requeue after ", after), deliveries, requeue)
		return nil
	}
	deliveries = inOrder(deliveries)
	return r.do(ctx, "Extend leases", fmt.Sprint(idsOf(deliveries, func(d eventqueue.Delivery) eventqueue.EventID { return d.Event })), nil, func() (string, error) {
		for _, d := range deliveries {
			requeue(d)
		}
		return "", nil
	})
}

// inOrder are the deliveries in an order that does not depend on the scheduler of Go.
func inOrder(deliveries []eventqueue.Delivery) []eventqueue.Delivery {
	return slices.SortedFunc(slices.Values(deliveries), func(a, b eventqueue.Delivery) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.AckID, b.AckID))
	})
}

// leaseExtension is the lease that workers ask for. The broker's is a little
// longer; and as answers are rounded to seconds, this one tells an extension from
// an answer.
const leaseExtension = leaseTime - 10*time.Millisecond

// send takes each answer to the gate by itself and does not wait for it: it must
// not matter how many answers the worker had found together, which is Go's to
// decide. The worker would only log a failure.
func (r ringer) send(ctx context.Context, op string, deliveries []eventqueue.Delivery, act func(eventqueue.Delivery)) {
	deadline, _ := ctx.Deadline()
	for _, d := range deliveries {
		r.p.errands.Go(func() {
			ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
			defer cancel()
			_ = r.do(ctx, op, fmt.Sprint(d.Event, " ", d.AckID), nil, func() (string, error) {
				act(d)
				return "", nil
			})
		})
	}
}
