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
//	find      what have earlier runs of this event written?
//	  done    they had published and remembered: the end
//	  intent  Find it: if it exists, remember, the end
//	clean     for each cleanup of the key that has expired and is free:
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
// runs, or waits for a retry), and no other event changes it. After that it is free.
// In the same way a row that is being cleaned up belongs to the event that does it.
// Neither leases nor clocks are needed: an event whose worker died is in the
// queue until it is run again or has failed for good.
//
// # Guarantees
//
//   - A crash at any point loses no cleanup, if Find finds what Send has published.
//     The event's next run finds it; if there is none, because it has failed
//     for good, the next publication of the key does, and deletes it.
//   - Only publications of the same key are deleted that have expired by the
//     database's clock, or, with an intent, that Find finds by its token.
//   - An event publishes once for a key. The exception: Send is called again when an
//     earlier run may have sent something that Find does not find, with the same
//     token, and Intent.Repeat set.
//   - Two events that publish with one key at the same time never both delete the same
//     publication, nor each other's: both publications stay until the next one, as does
//     the publication of an event that has not ended.
//   - After a failed deletion its row stays, and the new publication is sent
//     nevertheless. The next event tries it again.
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
// freezes between the intent and Send, its late publication is recorded late, in a row
// of its own, and cleaned up like any other. Only if it then dies as well, after its
// event has ended elsewhere, is the publication never cleaned up.
//
// During an outage of Postgres the run fails, and the next one continues. An event that
// an operator has retried after it failed publishes again only if its first
// publication was cleaned up or was never sent.
package cleanup
