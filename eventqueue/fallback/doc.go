// Package fallback keeps workers working while their notifier is down: a
// receiver that, after pulls have failed for a few seconds, finds due events in
// Postgres by itself, and steps back when the notifier answers again.
//
// # Semantics
//
// While the notifier answers, calls go through to it and the database is asked
// nothing. While it does not, a Pull takes what is owed a notification and due,
// and now and then what seems lost, from the table, skipping rows that somebody
// is writing and marking them as notified, so that several workers share the
// work. What it found is leased, requeued and acknowledged within the process:
// when the process dies, the relay or another worker finds it again by its age.
// Acknowledgements for the notifier are refused at once meanwhile, so that nobody
// waits for it; those notifications come again, and cost a look.
//
// # Failures
//
// A failure of the database is returned by Pull, whose caller waits and pulls
// again. Every probe of the notifier is bounded in time.
package fallback
