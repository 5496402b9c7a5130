package httptarget

import "eventsv2/eventqueue"

// SubscriptionEntry is a subscription of another service, each message of which becomes an event. Package pubsubsource knows
// what a name may be; this package does not.
type SubscriptionEntry struct {
	// Line is where the entry begins, counted from 1.
	Line         int
	Subscription string
	// Canvas and Key are those of the events.
	Canvas eventqueue.CanvasID
	Key    eventqueue.HandlerKey
}
