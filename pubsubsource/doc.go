// Package pubsubsource takes in the messages of a subscription of Google Cloud Pub/Sub that another service publishes to, and emits
// each as an event.
//
// # Guarantees
//
// A message is acknowledged only after the event is committed. Each message is emitted once, however often Pub/Sub delivers
// it, to whichever program: its id in its subscription is a unique key in the transaction of the event, which stays taken after the event's end for
// as long as the subscription retains messages, at least three days.
//
// The value of the event is the data of the message, byte for byte; it has to be JSON. The attributes are those of the event, with keys in
// lower case, and the ordering key is that of the event: events of a key are emitted in the order of their messages if the subscription
// orders messages.
//
// # Failures
//
// While the database cannot be reached, the Source holds the messages that it has, and extends their leases: an outage uses no
// delivery attempt. A message of which no event can be made is refused: it goes back to its subscription, is logged, and comes again until the
// subscription sends it to its dead-letter topic. If the subscription orders messages, those behind it of its ordering key that were pulled with
// it go back too, until its last delivery attempt, and no other waits for it. So a subscription without one is refused at the start, since such a message would come until
// its retention ends.
//
// If Pub/Sub does not answer, or the subscription is gone, Run tries again, in waits of up to five seconds. A program that is killed after
// the commit leaves messages that come again when their leases end, within a minute, and emit nothing.
package pubsubsource
