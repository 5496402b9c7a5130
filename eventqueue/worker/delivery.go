package worker

import (
	"eventsv2/eventqueue"
)

// delivery is a delivery that this worker holds, or an event that it has found without one: then
// AckID is empty.
type delivery struct {
	eventqueue.Delivery

	// needsNotify: the worker has found the event without a notification, and none has been
	// published for it.
	needsNotify bool
}

func received(pulled []eventqueue.Delivery) []delivery {
	deliveries := make([]delivery, len(pulled))
	for i := range pulled {
		deliveries[i].Delivery = pulled[i]
	}
	return deliveries
}

// unnotified is the delivery of an event that was found without a notification: none has to be
// answered, and its slot is a reserved one.
func unnotified(e *eventqueue.Event) delivery {
	return delivery{Delivery: eventqueue.Delivery{Notification: eventqueue.Notification{Event: e.ID, Canvas: e.Canvas}}}
}

// notified reports whether a notifier made the delivery.
func (d *delivery) notified() bool { return d.AckID != "" }

// split separates the second and further notifications of one event from a batch: the first one
// stands for them all.
func split(deliveries []delivery) (first, doubles []delivery) {
	seen := make(map[eventqueue.EventID]struct{}, len(deliveries))
	first = deliveries[:0]
	for _, d := range deliveries {
		if _, double := seen[d.Event]; double {
			doubles = append(doubles, d)
			continue
		}
		seen[d.Event] = struct{}{}
		first = append(first, d)
	}
	return first, doubles
}

// candidate is a delivery, and the claim's answer about its event.
type candidate struct {
	delivery delivery
	result   *ClaimResult
}
