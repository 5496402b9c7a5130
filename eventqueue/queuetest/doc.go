// Package queuetest gives a test a queue on Postgres whose clock is the test's own: in a bubble of testing/synctest,
// a test of a delay of an hour takes no time.
//
//	synctest.Test(t, func(t *testing.T) {
//		pool := queuetest.Pool(t, databaseURL) // of a database of the test's own, with the queue's schema
//		queue, err := eventqueue.New(pgstore.New(pool), notifier, eventqueue.QueueConfig{})
//		…
//	})
//
// Everything runs as in production, on the same SQL; notifier is that of package memnotify.
//
// # Time
//
// While a statement is under way, the bubble's time stands still, since a bubble takes a wait for the network for
// work. Before anything is sent to the database, its clock is set to the time of the bubble. A connection that has
// nothing to wait for but notifications (LISTEN) is at rest, so that time goes on. It hears what has been notified
// when a statement on a connection of the same [Clock] has ended.
//
// The clock is a function clock_timestamp that stands before Postgres' own in the search path of the connections, and
// of functions and procedures that set one. It also replaces now and clock_timestamp in the defaults of columns, such
// as delay_until: in those of your own tables, too. What an extension or another role owns stays as it is. In
// statements, the functions of transactions, such as now and CURRENT_TIMESTAMP, still return real time. Outside of a
// bubble the clock is that of this machine, or a [Stopped] one that goes on only when the test sets it, as that of package eventstest.
//
// # Limits
//
// A statement that waits for the lock of a transaction which itself waits for time to pass waits in vain: the lock
// timeout, which is real time, ends it. Connections use no TLS, and notifications of programs with other
// connections arrive late. Pools have to be made and closed within the bubble, databases outside of it.
package queuetest
