// Package memnotify is a notifier that lives within one process, with the
// semantics of a Google Cloud Pub/Sub pull subscription. It serves tests, the
// demo and benchmarks.
//
// # Guarantees
//
// What is published is pulled, in the order in which it became visible, until
// somebody acknowledges it. A pulled notification is leased: nobody else is
// shown it before the lease has ended, and then it comes again. Requeue moves
// the end of the lease. The queue has no bound. Every operation costs O(log n)
// of what is leased or delayed and O(1) of what is ready, so that a backlog of a
// million notifications is as fast as an empty one.
//
// Nothing runs in the background. A Pull that has to wait sets a timer for the
// next lease or delay that ends, so that an idle notifier costs nothing, leaks
// nothing, and obeys the clock of testing/synctest when New was called within
// the bubble.
//
// # Failures
//
// The memory of the process is all there is: what is queued ends with it, as if
// the broker had lost it. On top of that a test may make calls fail, lose or
// double what is published, end all leases, and wipe the queue; see Faults, Drop,
// Duplicate, Redeliver and Wipe.
package memnotify
