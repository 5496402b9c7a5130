// Package notifytest is the suite that every eventqueue.Notifier passes: the one
// in memory, the one on Postgres, the one on Google Cloud Pub/Sub against the
// official emulator, and the same against the fake server of its client library.
//
// # Guarantees
//
// A notifier that passes loses nothing that was published while it works, shows a
// leased notification to nobody else, brings back what was requeued not before
// its time, and brings back what nobody acknowledged. The suite asserts lower
// bounds of time only, measured from before the request to after the delivery,
// so that a slow machine never fails it.
//
// # Failure handling
//
// A case that waits for something which never comes fails when the patience of
// its Harness is over, and says what it waited for. Every case opens a notifier
// of its own and runs in parallel with the others.
package notifytest
