// Package cronchecker emits an event for each point in time at which a cron
// definition is due. Definitions live in Postgres (table cron_definitions) and
// are managed through Definitions; a Checker finds the slots that are due and
// emits for each, through the queue, one event with module CRON, the name of
// the definition, modifier "_" and the definition's canvas. Its value is
//
//	{"cron_id":7,"name":"report","slot":"2025-06-14T22:00:00Z","schedule":"every day","time_zone":"Europe/Berlin"}
//
// with the slot, in UTC, for which it was emitted, however late that was.
//
// # Guarantees
//
//   - I10: for a definition and a slot there is at most one event, ever, and
//     exactly one for each due slot under the definition's policy for missed
//     slots, with any number of checkers at once. An event and the row of
//     cron_records that stands for it commit together.
//   - The database's clock alone decides what is due. That of the program only
//     measures how long to wait.
//   - A slot is due when it is after the definition's start (when it was made,
//     replaced or enabled again) and after its last recorded slot. Old records
//     may be deleted at any time, but the newest of each definition must stay.
//   - What is removed, disabled or replaced emits nothing more under its old
//     terms once that call has returned.
//   - Between two passes a checker sends no statement. A pass is one statement,
//     and one transaction per 1,000 due slots.
//
// # Missed slots
//
// When no checker ran for a while, several slots of a definition are due at
// once. MissedLatest emits for the last one only, MissedAll for each, oldest
// first (1,000 in one pass, which is followed at once by the next), MissedNone
// for the last one if it is not older than two intervals of the checker, at
// least two minutes, and else for none.
//
// # Schedules
//
// A schedule goes by the clock on the wall of a time zone and is either one of
// these intervals, or an expression.
//
//	every minute     * * * * *
//	every hour       0 * * * *       each full hour
//	every 12 hours   0 0,12 * * *    midnight and noon
//	every day        0 0 * * *       midnight
//	every week       0 0 * * 1       midnight before Monday
//	every fortnight                  every second of these, counted from 1970-01-05
//
// An expression has five fields: minute (0-59), hour (0-23), day of the month
// (1-31), month (1-12 or jan-dec) and day of the week (0-7 or sun-sat; 0 and 7
// are Sunday). A field is a comma-separated list of *, a value, or a range a-b;
// each may have a step /n, and a/n is the range from a to the field's end (for
// weekdays, to Saturday). A range may end with Sunday (fri-sun) but not run
// backwards otherwise. Case does not matter. There is no field for seconds, no
// "?", "L", "W" or "#", and no word with @.
//
// If both fields for days are restricted (neither begins with *), a day matches
// when either of them does, as in every cron since Vixie's; otherwise both must:
// 0 0 */2 * mon means the Mondays with an odd date.
//
// # When clocks change
//
// Schedules whose minute or hour begins with * mean "while the clock shows
// this". They go by what the clock really shows: a time that is jumped over in
// spring is left out, one that comes twice in autumn counts twice. "every hour"
// is one of these, so that an hour passes between two runs, also when clocks
// change (by full hours; where they move by half an hour, once 90 minutes do).
//
// All others mean "at this time of the day". Their slot is the first moment at
// which the zone's clock shows the time or a later one. So a time that is jumped
// over is run once, when the clock has jumped: 30 2 * * * runs at 03:00 on that
// day in Berlin, every day runs at 01:00 where clocks go forward at midnight.
// Several times within one jump make one slot. A time that comes twice is run
// the first time only. It is the same for changes of half an hour and for those
// that skip a whole day.
//
// # Failures
//
// A checker that dies, or loses the database, in the middle of a pass leaves
// nothing behind: its transaction is rolled back and another checker, or its own
// next pass, finds the slots due. One that hangs within a transaction keeps the
// definitions of its batch from the others for at most half a minute; nobody
// waits for it. Run logs a failed pass as a warning and tries again after a
// back-off; it ends with its context only.
//
// A definition that cannot be read (written by hand, or its time zone is gone
// from the database of zones) is logged as an error in each pass and holds up no
// other.
//
// # The library
//
// The fields of an expression are read by robfig/cron. The search for slots is
// this package's own, because clock changes, and slots of the past, are where
// that library falls short: it leaves a time that is jumped over out, runs one
// that comes twice twice, knows no Sunday 7, gives up after five years, and
// cannot search backwards.
package cronchecker
