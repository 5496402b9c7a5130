// Package cleanup deletes the publication of an earlier event when a later one
// replaces it: yesterday's report, when today's is sent. A cleanup records how to
// delete a publication. Cleanups are rows of the table cleanups in the queue's own
// database.
//
// # Parts
//
//   - [Config] is a handler's configuration: a key, a ttl, and the inputs that belong
//     to the key.
//   - [NewKey] makes the [Key]: canvas, component, topic and a hash of those inputs.
//     Publications of different keys never touch each other.
//   - [Publications] is for handlers: it cleans up expired publications, publishes,
//     and records how to clean up (publish.go; the statements are in steps.go).
//   - [Store] is the table: put, list expired, list all, delete.
//
// Publications are cleaned up right before the next publication of the key, or when a
// handler calls [Publications.Clean], and at no other time.
//
// # The course of a publication
//
//	find      read the row that earlier runs of this event have written
//	  done    it is complete: nothing is left to do
//	  intent  call Find: if the publication exists, remember, and nothing is left to do
//	clean     for each cleanup of the key that has expired and is free:
//	          claim the row, call Delete, drop the row
//	intend    write the intent: key, event, a new token; refused if the claim is lost
//	Send      publish, with the token
//	remember  write the data that Delete needs, and the expiry
//
// Each step but Find, Delete and Send is one statement, and commits by itself.
//
// # To which event a row belongs
//
// A row belongs to its event while the event is in the queue (in events_v2: it waits,
// runs, or waits for a retry), and no other event changes the row. After that the row is
// free. In the same way, a row that is being cleaned up belongs to the event that cleans
// it up. This needs neither leases nor clocks: if the worker of an event dies, the event
// stays in the queue until it has run again or has failed for good.
//
// # Guarantees
//
//   - A crash at any point loses no cleanup, if Find finds what Send has published.
//     The event's next run finds it; if there is none, because it has failed
//     for good, the next publication of the key does, and deletes it.
//   - A publication is deleted only by one of the same key, and only after its cleanup
//     has expired by the database's clock. If only its intent is known, it is deleted only
//     if Find finds it by the token.
//   - An event publishes once for a key, with one exception: if an earlier run may have
//     sent something that Find does not find, Send is called again, with the same token
//     and Intent.Repeat set.
//   - Two events that publish with one key at the same time never both delete the same
//     publication, nor each other's: both publications stay until the next one, as does
//     the publication of an event that has not ended.
//   - If a deletion fails, its row stays, and the new publication is sent nevertheless.
//     The next event tries the deletion again.
//
// # Requirements for the functions of a Publication
//
// Delete must be idempotent: after a crash between Delete and the next statement it is
// called again. For a crash between Send and remember, either Find is needed, or a
// service that takes the token as an idempotency key. Without both ([Unsearchable]) such a
// crash leaves a publication that is never cleaned up, and the next run publishes again;
// Send can refuse to do so when Intent.Repeat is set.
//
// # Failures
//
// A worker that was frozen past its lock cannot write an intent any more. If it
// freezes between the intent and Send, its late publication is recorded late, in a row
// of its own, and cleaned up like any other. If it then dies as well, Find finds the late
// publication when that of its event is cleaned up. Only if it is sent after that, and the
// worker dies then, is it never cleaned up.
//
// During an outage of Postgres the run fails, and the next one continues. An event that
// an operator has retried after it failed publishes again only if its first
// publication was cleaned up or was never sent.
package cleanup
