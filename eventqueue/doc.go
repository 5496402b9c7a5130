// Package eventqueue is a queue of durable background events: Postgres holds the truth, one row per
// event. A notifier (Google Cloud Pub/Sub) only suggests to a worker which event to try. This
// package has what an application names: events and their limits, the [Queue] that takes them in,
// handlers and their policies, and the interfaces of notifiers.
//
// Package service puts it all together, for programs that want no more than to emit and
// to have handlers run.
//
// # Parts
//
//   - [Queue] takes events in: [Queue.Emit], [Queue.EmitMany], [Queue.InTx] for a unit of work,
//     [Queue.EmitTx] and [Queue.EmitSQL] inside a transaction of the caller's, and
//     [Queue.EmitUnique], which reports which events are new.
//   - [Handlers] maps events to the [Handler] that runs them, and to its [Policy].
//   - Package worker runs them.
//   - Package maintenance publishes pending and lost notifications, and prunes the history.
//   - Package operate pauses and blocks handlers, sets limits, and requeues and retries events.
//   - Package typed is for events that are structs, and for chains of handlers.
//   - Package machine is the diagram that a worker follows, ratelimit the arithmetic of
//     rate limits.
//
// The database is behind the small interfaces that each part names, like [EmitStore]; package
// pgstore implements them on Postgres. Notifications are published and delivered by a [Notifier].
//
// # Guarantees
//
// An event that was accepted (its transaction committed) ends exactly once: it completes, or it is
// in event_log as FAILED, with its value (I1). That holds even if any notification is lost,
// doubled, late or forged (I2). Handlers run at least once: without a fault exactly once, and each
// extra run overlaps a fault of the worker that held the event (I3). At any time at most one worker
// holds a valid claim, by the database's clock (I4), and a write with a claim that is no longer
// valid is refused (I5). Nothing runs before its delay_until (I6), and nothing is claimed while its
// handler is paused or blocked (I7).
//
// Events have no order, except those of one canvas with the same OrderingKey.
//
// # Failures
//
// While the database is unavailable, emitting fails; workers keep the events they hold and try
// again. While the notifier is unavailable, emitting goes on, notifications stay pending until it
// returns, and workers find due events in the database.
package eventqueue
