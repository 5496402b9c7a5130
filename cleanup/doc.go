// Package cleanup has a publication of an earlier event deleted when a later one
// takes its place: the report of yesterday, when that of today is sent. Cleanups,
// which say how to delete a publication, are rows of the table cleanups in the
// queue's own database.
//
// # Parts
//
//   - [Config] is a handler's configuration: a key, a ttl, and the inputs that belong
//     to the key.
//   - [NewKey] makes the [Key]: canvas, component, topic and a hash of those inputs.
//     Publications of different keys never touch each other.
//   - [Publications] is for handlers: it cleans up what has expired, publishes, and
//     remembers how to clean up (publish.go; the statements are in steps.go).
//   - [Store] is the table: put, list what has expired, list all, delete.
//
// Nothing is cleaned up by itself. It happens right before the next publication of
// the key, or when a handler calls [Publications.Clean].
//
// # The course of a publication
//
//	look      what have earlier runs of this event left?
//	  done    they had published and remembered: the end
//	  intent  Find it: if it is there, remember, the end
//	clean     for each cleanup of the key that has expired and is nobody's:
//	          claim the row, Delete, drop the row
//	intend    write the intent: key, event, a new token; refused if the claim is lost
//	Send      with the token
//	remember  what Delete needs, and when it expires
//
// Each step but Find, Delete and Send is one statement, and commits by itself.
//
// # Whose a row is
//
// A row belongs to its event while that is in the queue (in events_v2: it waits,
// runs, or waits for a retry), and nobody else touches it. From then on it is free.
// In the same way a row that is being cleaned up belongs to the event that does it.
// There is no lease and no clock in it: an event whose worker died is in the
// queue until it is run again or has failed for good.
//
// # Guarantees
//
//   - A crash at any point loses no cleanup, if Find finds what Send has published.
//     The event's next run finds it; if there is none, because it has failed
//     for good, the next publication of the key does, and deletes it.
//   - Nothing is deleted but what was published with the same key and has expired by
//     the database's clock, or, with an intent, what Find finds by its token.
//   - An event publishes once for a key. The exception: Send is called again when an
//     earlier run may have sent something that Find does not find, with the same
//     token, and Intent.Repeat set.
//   - Two events that publish with one key at the same time do not delete the same
//     publication both. They do not delete each other's either: both stay until the
//     next one, as does what was published by an event that has not ended.
//   - A deletion that fails keeps its row and does not keep the new publication
//     from being sent. The next event tries it again.
//
// # What the publisher has to supply
//
// Delete is idempotent: a crash between it and the next statement has it called
// again. Find, or a service that takes the token as an idempotency key, for the
// moment between Send and remember. Without both ([CannotFind]) a crash in that
// moment leaves a publication that is never cleaned up, and the next run
// publishes again; Intent.Repeat lets Send refuse that instead.
//
// # Failures
//
// A worker that was frozen past its lock cannot write an intent any more. If it
// freezes between that and Send, what it sends late is remembered late, in a row
// of its own, and cleaned up like any other; only if it dies then as well, after its
// event has ended elsewhere, is the publication lost to cleaning up.
//
// When Postgres is away, the run fails and the next one goes on. An event that an
// operator has retried after it failed publishes again only if its first
// publication was cleaned up or was never sent.
package cleanup
