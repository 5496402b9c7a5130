package pgnotify

import (
	"context"
	"fmt"
	"time"

	"eventsv2/eventqueue"
)

// Ack drops the deliveries for good. It sends nothing and does not block. It
// ignores a delivery whose lease has ended. It returns an error when ctx has ended,
// or when an ack ID was not made by a Notifier.
func (n *Notifier) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.leases.drop(deliveries)
}

// Requeue lets the leases of the deliveries end after the given time, rounded up
// to Config.Unit; a negative time means 0, which is at once. It does not block: the
// notifications are inserted into the table in the background, after that time. It
// refuses more than eventqueue.MaxRequeue, and otherwise fails as Ack does.
func (n *Notifier) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if after > eventqueue.MaxRequeue {
		return fmt.Errorf("requeue %d notifications after %v: the longest delay is %v; acknowledge them and publish them again when they are due",
			len(deliveries), after, eventqueue.MaxRequeue)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.leases.move(deliveries, time.Now().Add(roundUp(after, n.config.Unit)))
}

// roundUp returns the least multiple of unit that is not less than d: a delay
// that became 0 would be a hot loop.
func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return d - rest + unit
	}
	return max(d, 0)
}
