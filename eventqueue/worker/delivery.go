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

// unnotified is the delivery of an event that was found without a notification: none has to be
// answered, and its slot is a reserved one.
func unnotified(e *eventqueue.Event) delivery {
	return delivery{Delivery: eventqueue.Delivery{Notification: eventqueue.Notification{Event: e.ID, Canvas: e.Canvas}}}
}

// notified reports whether a notifier made the delivery.
func (d *delivery) notified() bool { return d.AckID != "" }

// candidate is a delivery, and the claim's answer about its event.
type candidate struct {
	delivery delivery
	result   *ClaimResult
}
