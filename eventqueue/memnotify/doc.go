// Package memnotify is a notifier that lives within one process, with the semantics of a
// Google Cloud Pub/Sub pull subscription. It serves tests, programs that consist of one
// process, and package fallback.
//
// # Guarantees
//
// Published notifications are pulled, in the order in which they became visible,
// until they are acknowledged. A pulled notification is leased: no other pull gets
// it before the lease has ended, and then it is delivered again. Requeue moves
// the end of the lease. The queue has no bound. Every operation costs O(log n) in
// the number of leased and delayed notifications and O(1) in the number of ready
// ones, so that a backlog of a million notifications is as fast as an empty one.
//
// Nothing runs in the background. A Pull that has to wait sets a timer for the
// next end of a lease or delay. So an idle notifier costs nothing, leaks nothing,
// and follows the clock of testing/synctest when New was called within the bubble.
//
// # Failures
//
// The queue is in the memory of the process and is lost with it. In addition, a test
// may make calls fail, lose or double published notifications, end all leases, and
// wipe the queue; see Faults, Drop, Duplicate, Redeliver and Wipe.
package memnotify
