// Package pgnotify is the notifier on Postgres, for systems without Pub/Sub.
// Notifications are rows of an unlogged table, LISTEN/NOTIFY wakes the pulls that
// wait for them, and a lease is in the memory of the process that pulled.
//
// # Guarantees
//
// Publishing is one statement, which wakes the waiting pulls of all processes
// when it commits. The table has at most one notification per event: Publish does
// not add a second one. So while any process pulls, the table is at most about as
// large as the queue.
// Pulling is one statement, which deletes the rows that it returns; two pulls
// never get the same row. Acknowledging, requeueing and extending a lease send no
// statement, because leases are in memory. When a lease ends, or the delay of
// Requeue is over, its notification is inserted into the table again, and any
// process may pull it. Close inserts all notifications that are left.
//
// A pull that waits sends nothing, however long it waits. It misses nothing: the
// first poll of the table comes after LISTEN, Postgres delivers a NOTIFY when its
// transaction has committed and its rows are visible, and a poll that a NOTIFY
// causes begins after that NOTIFY has arrived. Rows that a poll may have passed
// over (see marks) are polled once more, a second later.
//
// The cost of a pull grows neither with the backlog nor with the number of rows
// that were taken out of the table before.
//
// # Failures
//
// If no process pulls, because the workers use another notifier than the one that
// is published to, the table grows by a row for each published event, and the row
// stays after the event has ended. [Waiting] lets such a program notice.
//
// Three kinds of notifications are lost: those in the table when Postgres crashes,
// those that a killed process had leased, and those of a pull whose answer was
// lost. The relay publishes them again (I2). So run cmd/cron.
//
// The listening connection reconnects by itself. Pulls poll the table about once a
// second while that connection is down, while it hangs in connecting, and while it
// receives nothing because a transaction pooler is in between. Publish and Pull do
// not repeat a statement: the error reaches the caller, who waits or leaves the
// notification to the relay. A notification that has to be inserted again stays in
// memory until an insert succeeds; the waits between the attempts grow.
package pgnotify
