// Package cronchecker emits an event for each time at which a cron definition is
// due. Such a time is called a slot. Definitions are rows of cron_definitions in
// Postgres and are managed through Definitions. A Checker finds the slots that are
// due and emits one event for each, through the queue. The event has module CRON,
// the definition's name, modifier "_" and the definition's canvas. Its value is
//
//	{"cron_id":7,"name":"report","slot":"2025-06-14T22:00:00Z","schedule":"every day","time_zone":"Europe/Berlin"}
//
// with the slot in UTC, however late the event was emitted.
//
// # Guarantees
//
//   - I10: a slot of a definition never has more than one event. It has exactly one
//     if it is due under the definition's policy for missed slots. Both hold for any
//     number of concurrent checkers. An event and its row in cron_records commit
//     together.
//   - Only the database's clock decides what is due. The program's clock only
//     measures how long to wait.
//   - A slot is due if it is after the definition's start and after its last recorded
//     slot. The start is the time when the definition was added, replaced or enabled
//     again. Old records may be deleted at any time, but the newest one of each
//     definition must stay.
//   - Once a call that removes, disables or replaces a definition has returned, no
//     event is emitted under the old terms.
//   - A checker sends no statement between two passes. A pass takes one statement,
//     and one transaction per 1,000 due slots.
//
// # Skipped slots
//
// A definition may skip the slots that come while a rule would hold their events back (SkipIfPaused), or while an
// earlier event of it waits or runs (SkipIfRunning). Such a slot is recorded, and gets no event later.
//
// # Missed slots
//
// After a time without a checker, several slots of a definition are due at once.
// The definition's policy decides for which of them events are emitted:
//
//   - MissedLatest: for the latest one only.
//   - MissedAll: for each, the oldest first. A pass emits at most 1,000 of them; the
//     next pass follows at once.
//   - MissedNone: for the latest one, unless it is late by more than two intervals of
//     the checker (or two minutes, if that is longer). Then for none.
//
// # Schedules
//
// A schedule follows the wall clock of a time zone. It is either an expression or
// one of these intervals:
//
//	every minute     * * * * *
//	every hour       0 * * * *       each full hour
//	every 12 hours   0 0,12 * * *    midnight and noon
//	every day        0 0 * * *       midnight
//	every week       0 0 * * 1       midnight at the start of Monday
//	every fortnight                  every second Monday, counted from 1970-01-05
//
// An expression has five fields: minute (0-59), hour (0-23), day of the month
// (1-31), month (1-12 or jan-dec) and day of the week (0-7 or sun-sat; 0 and 7
// are Sunday). A field is a comma-separated list. Each element is *, a value, or a
// range a-b, and may have a step /n; a/n is the range from a to the end of the field
// (for weekdays, to Saturday). A range may end with Sunday (fri-sun); otherwise
// it must not run backwards. Case does not matter. There is no field for seconds,
// no "?", "L", "W" or "#", and no name that begins with @.
//
// If both fields for days are restricted (neither begins with *), a day matches
// when either field matches, as in every cron since Vixie's. Otherwise both must
// match: 0 0 */2 * mon means the Mondays with an odd date.
//
// # When clocks change
//
// If the minute or the hour of a schedule begins with *, the schedule means "while
// the clock shows this". A time that the clock skips in spring is left out, and a
// time that it repeats in autumn counts twice. "every hour" is such a schedule: its
// slots stay one hour apart even when clocks change. (Where clocks change by
// half an hour, two slots are once 90 minutes apart.)
//
// Every other schedule means "at this time of the day". The slot is the first moment
// at which the zone's clock shows that time or a later one. So a skipped time is due
// right after the change: on that day 30 2 * * * is due at 03:00 in Berlin, and "every
// day" at 01:00 where clocks go forward at midnight. If one change skips several
// times of a schedule, they become one slot. A repeated time is due the first time
// only. The same rules hold for changes of half an hour and for those that skip a
// whole day. Schedule.Preview says in words what a change does to the slots to come.
//
// # Failures
//
// If a checker dies or loses the database during a pass, its transaction is rolled
// back. Another checker, or its own next pass, finds the same slots due. If a checker
// hangs within a transaction, other checkers skip the definitions of its batch,
// without waiting, for at most half a minute. Run logs a failed pass as a warning and
// tries again after a back-off; it ends only with its context.
//
// A definition that cannot be read is logged as an error in each pass and does not
// delay any other. This happens to a definition that was written with SQL, or whose
// time zone was removed from the time zone database. A definition whose events are refused,
// by the database or by an emit middleware, is logged as an error too, and delays no other:
// its slots stay due, and each pass tries them again.
//
// # The library
//
// The library robfig/cron reads the fields of an expression. This package searches for
// slots itself, because the library handles clock changes and past slots differently:
// it leaves out skipped times, runs repeated times twice, does not accept 7 as Sunday,
// gives up after five years, and cannot search backwards.
package cronchecker
