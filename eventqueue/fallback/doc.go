// Package fallback keeps workers running while their notifier is down. Its receiver
// finds due events in Postgres when the notifier's check fails, or when pulls have failed
// for a few seconds, and stops when the notifier answers again.
//
// # Semantics
//
// While the notifier answers, the receiver passes calls on to it. It then queries the
// database only for a few seconds after a program has reported, by NOTIFY, that it could
// not publish.
//
// While the notifier does not answer, a Pull takes due events with pending
// notifications from the table, and from time to time those whose notifications seem
// lost. It skips locked rows and marks the others as notified, so that several workers
// divide the work. Of the lost ones the store of a worker finds those whose events the
// worker has handlers for. These notifications are leased, requeued and acknowledged within the
// process. If the process dies, the relay or another worker finds the events again by
// their age. During this time, acknowledgements for the notifier are refused at once, so
// that no caller waits for it. The notifications come again, and cost a claim each.
//
// # Failures
//
// Pull returns the failures of the database; its caller waits and pulls again. Every
// probe of the notifier is bounded in time.
package fallback
