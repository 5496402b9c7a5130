// Package notifytest is the suite that every eventqueue.Notifier passes: the one
// in memory, the one on Postgres, and the one on Google Cloud Pub/Sub, both with
// the official emulator and with the fake server of its client library.
//
// # Guarantees
//
// A notifier that passes loses no notification while it works. It gives a leased
// notification to no other pull, delivers a requeued one again, not before its
// time, and delivers again every notification that was not acknowledged. The suite
// asserts only lower bounds of time, measured from before the request to after the
// delivery, so that a slow machine never fails it.
//
// # Failures
//
// A case that waits in vain fails at the time limit of its Harness, and reports what
// it waited for. Every case opens a notifier of its own and runs in parallel with
// the others.
package notifytest
