// Package check decides whether a run of chaos has broken a promise of the queue. It has the oracle judge the
// history of all events, and searches itself for what a history cannot say.
//
// # What it goes by
//
// Records that are not the queue's: triggers write every change of every
// row, with the writer's name; handlers write every start and end to files
// outside the database; the emitters record every answer. A process has
// a new name each time it is started, so that a row tells which one wrote. From
// these it finds:
//
//   - lost: an accepted event that is gone without having completed, or failed
//     as its handler wanted it;
//   - stuck: one that has not ended when the waiting is over, or that was due for
//     minutes before anybody claimed it, though nothing held it back;
//   - early: one that was claimed before its time;
//   - stale writes: a row written by somebody whose claim was no longer the last;
//   - unexplained duplicates: a run that had no reason. A run has one when the
//     run before it failed, was snoozed or given back, or when a fault of its
//     holder or of Postgres overlaps it. Nor may a run that was to end well be
//     given back without a fault or a stop;
//   - rates: a minute with more grants of the exact rate limit than it allows, a run without
//     a grant, or more runs under the approximate one that a worker did not report than fit
//     into a batch. Grants are what the counters counted, by the clock of the database;
//   - order, unique, limits: two valid claims of one ordering key at once, or a claim
//     before the end of an event that was emitted earlier with the key; a unique key that
//     did not hold or held too long; more valid claims at once than the concurrency limit
//     allows. The verdict names these classes only when there are any;
//   - chains: a handler of a typed event that has no event or several, or one though the
//     typed event did not complete;
//   - other: claims of a paused handler, two valid claims at once, changed
//     values, cron slots that are missing or doubled, effects of a transaction
//     that were not there exactly once, a row by hand that nobody can run and somebody
//     touched, one that the table should have refused, a default of another program that was
//     not in force.
//
// # Failure handling
//
// What was recorded and cannot be read is an error of Read. Check is a pure function.
package check
