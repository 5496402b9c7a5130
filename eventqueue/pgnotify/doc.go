// Package pgnotify is the notifier on Postgres, for those who have no Pub/Sub:
// notifications are rows of an unlogged table, LISTEN/NOTIFY wakes whoever waits
// for them, and their leases live in the memory of the process that pulled them.
//
// # Guarantees
//
// Publishing is one statement, which wakes the waiting pulls of all processes
// when it commits. The table has one notification per event at most: one that
// waits already is not added again, so that a table from which somebody pulls is
// about as large as the queue at most.
// Pulling is one statement, which deletes the rows that it returns; two pulls
// never get the same row. Acknowledging, requeueing and extending a lease are no
// statements: a lease is kept in memory, and when it ends, or the delay of
// Requeue is over, its notification is inserted into the table again, for
// anybody. Close inserts all that are left.
//
// A pull that waits sends nothing, however long. Nothing is missed by that: the
// first look into the table comes after LISTEN, Postgres delivers a NOTIFY when
// its transaction has committed and its rows can be seen, and each look after a
// NOTIFY begins after it has come. What a look may have passed over (see marks)
// is looked at a second later, once.
//
// The cost of a pull does not grow with the backlog nor with what was taken out
// of the table before.
//
// # Failures
//
// Where nobody pulls, since the workers listen to another doorbell than the one
// that is rung, the table grows by a row for each event that is published, and
// keeps it when the event has long ended. [Waiting] lets such a program notice.
//
// What Postgres forgets in a crash, what a killed process had leased, and what a
// pull took whose answer was lost are lost notifications: the relay rings for
// their events (I2). So run cmd/cron.
//
// The connection that listens is made again by itself, and while it is down,
// hangs while it is made, or hears nothing because a pooler of transactions is
// between, pulls look into the table about once a second. Publish and Pull do not repeat a statement: an error
// reaches the caller, who waits or leaves the notification to the relay. What is
// to be inserted again stays in memory until it is, with growing waits.
package pgnotify
