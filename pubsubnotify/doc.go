// Package pubsubnotify is the notifier on Google Cloud Pub/Sub. It also talks to
// the official emulator and to the fake server of the client library.
//
// # Guarantees
//
// A notification is one message: its data is the JSON {"id", "canvas_id"}, its
// attribute "traceparent" the trace context of the emitter, if there is one. The
// package uses the unary calls of the service, since these give exact
// back-pressure (a Pull leases no more than it returns) and ack IDs.
//
// Settings of a topic or a subscription that would lose or delay events are refused as
// soon as the service answers, by Notifier.Attend, with a correction for each. A Publisher
// needs the right to publish and checks nothing else. With Config.Create it makes what is
// missing with the right settings: no dead-letter policy and no retry policy
// (both act on ack deadlines that end, which are the delays of Requeue), an
// expiration of never, an ack deadline of 60 seconds, a retention of 7 days,
// no ordering, no filter and no exactly-once delivery (which lets ack IDs expire).
//
// # Failures
//
// No call is repeated by this package: an error reaches the caller at once, who
// knows better whether to wait (a worker), or to give up and leave the
// notification to the relay (an emitter). A connection that breaks is made again
// in the background within about a second of the service's return. An emulator
// forgets topic and subscription when it stops; with Config.Create the first call
// after its return fails and makes them again. What the service still hands to a Pull that was cut off is
// given back at once; what it hands to a process that was killed comes again when
// the lease ends.
//
// A message that is no notification is acknowledged, counted and logged, and the
// others of its batch are delivered.
package pubsubnotify
