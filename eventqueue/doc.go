// Package eventqueue is a queue of durable background events: Postgres holds
// the truth, one row per event, and a notifier (Google Cloud Pub/Sub) only rings
// a bell that tells a worker to try one.
//
// # Parts
//
//   - [Queue] takes events in: [Queue.Emit], [Queue.EmitMany], [Queue.InTx] for a
//     unit of work, [Queue.EmitTx] and [Queue.EmitSQL] inside a transaction of
//     the caller's, and [Queue.EmitUnique], which tells what is new.
//   - [Worker] runs them: it pulls notifications, asks the database about their
//     events and claims them in batches (receive.go), follows the diagram of
//     package machine, runs the [Handler] (process.go), writes how it ended
//     (finish.go), answers the notifications (answer.go) and renews the locks of
//     what runs long (heartbeat.go).
//   - [Relay] publishes the notifications that are owed or seem lost.
//   - [Rules] pauses and blocks handlers.
//   - [RunningLimits] bounds how many events run at once; the worker has them wait in
//     lines, as it has those of one ordering key (turns.go).
//   - [RateLimits] bounds how many events run per minute and day; the worker asks them
//     about claimed events before it runs them (ratestage.go).
//   - [Bus] is for typed events: structs, and chains of handlers that get them.
//   - [Requeuer] has events tried now that are delayed, or whose worker is gone.
//   - [Pruner] deletes from event_log what has been there for long enough.
//
// The database is behind the small interfaces that each of these names
// ([EmitStore], [ClaimStore], [RelayStore], [UniqueStore], [RuleStore],
// [RunningLimitStore], [RateStore], [RequeueStore], [HistoryStore]); package
// pgstore implements them on Postgres. The bell is behind [Notifier].
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
// Events have no order, except those of one canvas with the same OrderingKey.
//
// # Typed events
//
// A [Bus] is built on what is above and changes nothing in it: [Bus.Register]
// adds ordinary handlers, and emitting writes ordinary events. A struct has a
// handling key, RECORD.CREATE, made of its type and its action; [On] adds a
// handler of a key, which gets the events of the keys below it too.
//
// An emitted struct is one row, whose handler is the dispatch: module RECORD, name
// CREATE, modifier _ (name _ for the key RECORD alone). It checks the value, runs
// the [Synchronous] handlers, parents first, and then, in one transaction with the
// event's completion ([Run.CompleteTx]), emits one event for each other handler:
// module RECORD, the handler's name, and the whole key as the modifier. So either
// all of them have their event or the dispatch is run again, and from then on
// each is retried, paused and failed alone.
//
// What follows: a synchronous handler that fails has all of them run again, and
// the others have got nothing yet. Handlers are those of the worker that runs the
// dispatch, so while a deploy is under way an event may go to the handlers of
// either version. Events in the table find their handler by its name: one that
// is moved along the chain, or made synchronous, keeps its events; one that is
// renamed leaves them, visibly, for a worker that has the old name.
//
// Values are read strictly where it matters: a field that the struct does not
// have is ignored; one that is missing, or of another type, ends the event as
// FAILED with a [DecodeError] that names it. Every exported field is needed,
// unless it is a pointer or its tag says omitempty or omitzero. null is for
// what can be nil in Go, and names are compared as they are written.
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
