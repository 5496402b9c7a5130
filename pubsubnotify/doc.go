// Package pubsubnotify is the notifier on Google Cloud Pub/Sub. It also talks to
// the official emulator and to the fake server of the client library.
//
// # Guarantees
//
// A notification is one message. Its data is the JSON {"id", "canvas_id"}. Its attribute
// "traceparent" is the trace context of the emitter, if there is one. The package uses the
// unary calls of the service, which give ack IDs and exact back-pressure (a Pull leases no
// more than it returns).
//
// A topic or a subscription with settings that would lose or delay events is refused as
// soon as the service answers, by New or Notifier.Attend, with a correction for each
// setting. A Publisher needs the right to publish, and checks nothing else. With
// Config.Create, missing resources are made with the right settings: no dead-letter
// policy and no retry policy (both act when ack deadlines end, and Requeue makes its
// delays of ack deadlines), an expiration of never, an ack deadline of 60 seconds, a
// retention of 7 days, no ordering, no filter and no exactly-once delivery (with which
// ack IDs expire).
//
// # Failures
//
// This package repeats no call: the caller gets an error at once. A worker then waits, and
// an emitter leaves the notification to the relay. A connection that breaks is opened
// again in the background, within about a second after the service is back. An emulator
// loses its topics and subscriptions when it stops; with Config.Create the first call
// after its restart fails and creates them again. If the service delivers messages to a
// Pull that was cut off, they are requeued at once. If it delivers them to a process that
// was killed, they come again when the lease ends.
//
// A message that is no notification is acknowledged, counted and logged, and the
// others of its batch are delivered.
package pubsubnotify
