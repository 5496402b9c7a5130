// Package worker runs events: a [Worker] pulls notifications, claims their events in batches, runs
// their handlers, writes the completions and acknowledges the notifications.
//
// # The way of a notification
//
// The files follow it, in this order:
//
//   - pull.go pulls
//   - claim.go claims the events of a batch that may run, with one statement
//   - decide.go follows the facts of each event to the next state of the diagram
//   - advance.go advances ordering groups, and ratestage.go asks rate limits
//   - execute.go runs the handler, and completetx.go completes an event in the handler's own
//     transaction
//   - completion.go decides what is written about a run, and complete.go writes it, many with one
//     statement
//   - acknowledge.go acknowledges notifications or requeues them
//
// store.go defines what the worker needs of the database. At the start, begin.go waits until the
// database can be used. heartbeat.go renews the locks of long runs, fairness.go keeps one canvas
// from taking all slots, unanswered.go gives back claims whose answers were lost, unknown.go leaves
// events without a handler to other workers, forward.go tells one of these that has it, and standby.go falls back to the database while the
// notifier is down.
//
// # Failures
//
// A worker that dies leaves locks that expire. The next claim takes the event over and counts the
// lost run as a failed attempt if it is known to have begun (I18), so an event that kills its
// workers ends as FAILED (I9). A worker that is stopped releases its events, which uses no attempt.
// While the database is unavailable, a worker keeps the events that it holds and tries again.
package worker
