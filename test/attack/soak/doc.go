// Command soak runs a whole deployment for hours at a steady rate, with a fault a
// minute, and reports whether anything was lost and whether anything goes on growing.
//
//	make soak HOURS=1
//	cd test/attack && go run ./soak -hours 1 -report soak.md
//
// # What runs
//
// A Postgres with fsync and the official Pub/Sub emulator, both its own; two
// cmd/worker that post to a target in this process; a cmd/cron; and a second
// process of this program, which embeds a worker, a relay and a cron checker. This
// process emits through the library, 100 events a second unless -rate has
// another number: most just run; some are delayed, fail the first time, take longer
// than a lock lasts, or belong to a handler that is paused most of the time. A
// cron definition emits one event a minute. As an operator would, the soak lifts
// the pause every few minutes, and deletes old cron records.
//
// Once per interval (-every) one fault happens, in rotation: kill -9 of a worker, of Postgres, or
// of the emulator, which loses everything; SIGSTOP of a process until its locks
// have expired, then SIGCONT; all connections to Postgres cut; SIGTERM and restart
// of a worker. One worker, the cron process and the embedding process are the
// long-lived programs: they are frozen, too, but live through the whole run, so that what grows
// in them can be seen.
//
// # What is measured
//
// Every 15 seconds, more often in a run of less than an hour, less often in a run
// of many hours: of each long-lived program the memory that is its own (RssAnon) and its open files;
// of the embedding process its goroutines and the heap that a collection left; of
// this process goroutines and open files, not memory, since it remembers events;
// of Postgres its client connections, the rows of the tables that events pass
// through, and of every table its size and that of its indexes.
//
// # What counts as growth
//
// The medians of four quarters of the run are compared; the first quarter is the
// warm-up and counts for nothing. A measure grows when all of this holds:
//
//   - the median of the last quarter is above that of the second by more than an
//     absolute and a relative allowance (measure.go), about twice the noise of a
//     run without leaks;
//   - it rises from the second to the third and from the third to the last
//     quarter, each time by at least a quarter of the whole rise: what rises in
//     one step and stays there does not go on growing;
//   - of the medians of 18 windows after the warm-up at least three quarters of
//     all pairs rise (Kendall's tau of 0.5 or more): noise and saw-teeth do not.
//
// A leak that stays below the allowances in half the length of a run is not
// found; a longer run finds smaller ones. Runs of less than ten minutes are all
// warm-up, and their growth is not decided.
//
// A crash makes Postgres lose track of which pages of an index are free, as far as it
// has learnt that since its last complete checkpoint. The index then grows until
// the next vacuum, once for each crash, though it has free pages. By default a
// checkpoint takes up to ten minutes to be complete, and the crashes here come
// more often; so Postgres is set to make one each minute, so that a crash does
// no more than it does where crashes are rare.
//
// # What counts as lost and stuck
//
// The soak does not ask the queue what was done. It remembers which emits
// succeeded; the target and the embedding process report each value that a
// handler has done, outside the database. lost counts events that were accepted
// and never done, cron slots that were due and never done, and values that are not
// byte for byte what was emitted. Running an event again is not a loss;
// a fault may cause it. stuck counts the rows of events_v2 that are
// left when the queue has had the time of -drain to come to rest. No event is to
// end as FAILED here; failed counts those that did.
//
// # Failures
//
// A table of all measures precedes the last line: the first value, the
// medians of the quarters, the last value when the queue was at rest, and tau. The
// last line is the verdict:
//
//	soak: hours=1 events=… faults=… lost=0 stuck=0 growth=none
//
// or growth=goroutines(library),table(events_v2), or growth=undecided. The exit
// status is 0 when nothing was found, 1 when something was, or when the run
// itself failed (a process ended by itself, a server could not be restarted), 2
// for a wrong command line. After a failure the logs of the processes are retained,
// and their directory is named. SIGINT ends the load, and the verdict is about
// what was done so far; a second one ends the program at once. No process
// outlives the program, however it ends: the kernel kills them with it. It runs on
// Linux only, because it reads from /proc what processes use.
package main
