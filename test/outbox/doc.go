// Package outbox holds the tests of events_emit and send_to_outbox, the SQL
// functions that emit from plain SQL and from triggers, and the examples of
// docs/outbox.md. It has no code.
//
// # Guarantees
//
// The tests emit as a psql or a driver of another language would, with one text
// of SQL, on a real Postgres. What has to arrive is awaited at the notifier of a
// real relay, or in the handler of a real worker. A relay whose own timer is
// minutes away shows that the commit wakes it; one that cannot hear shows that
// its timer is enough. How long a commit waits for its publish is measured and
// logged, and no test fails for it.
package outbox
