// Package eventqueue is a queue of durable background events: Postgres holds
// the truth, one row per event, and a notifier (Google Cloud Pub/Sub) only rings
// a bell that tells a worker to try one.
//
// # Parts
//
//   - [Queue] takes events in: [Queue.Emit], [Queue.EmitMany], [Queue.InTx] for a
//     unit of work, [Queue.EmitTx] and [Queue.EmitSQL] inside a transaction of
//     the caller's.
//   - [Worker] runs them: it pulls notifications, asks the database about their
//     events and claims them in batches (receive.go), follows the diagram of
//     package machine, runs the [Handler] (process.go), writes how it ended
//     (finish.go), answers the notifications (answer.go) and renews the locks of
//     what runs long (heartbeat.go).
//   - [Relay] publishes the notifications that are owed or seem lost.
//   - [Rules] pauses and blocks handlers.
//
// The database is behind the small interfaces that each of these names
// ([EmitStore], [ClaimStore], [RelayStore], [RuleStore]); package pgstore
// implements them on Postgres. The bell is behind [Notifier].
//
// # Guarantees
//
// An event that was accepted (its transaction committed) ends exactly once: it
// completes, or it is in event_log as FAILED, with its value (I1). That holds if
// any notification is lost, doubled, late or forged (I2). Handlers run at least
// once: without a fault exactly once, and each extra run overlaps a fault of the
// worker that held the event (I3). At any time at most one worker holds a valid
// claim, by the database's clock (I4), and a write with a claim that is no
// longer valid is refused (I5). Nothing runs before its delay_until (I6), and
// nothing is claimed while its handler is paused or blocked (I7).
//
// Events have no order.
//
// # Failures
//
// A worker that dies leaves locks that expire; the next claim takes the event
// over and counts the lost run as a failed attempt, so an event that kills its
// worker ends as FAILED (I9). A worker that is stopped gives its events back
// unharmed. While the database is away, workers hold on to what they have and
// try again; while the notifier is away, emit goes on and notifications are owed
// until it returns.
package eventqueue
