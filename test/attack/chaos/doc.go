// Command chaos attacks a whole deployment for some minutes and reports whether
// anything was lost: four workers (three that embed worker.Worker, one
// cmd/worker that posts to a target in this process), two cmd/cron, Postgres with
// fsync, and the official Pub/Sub emulator, all as real processes.
//
//	cd test/attack && go run ./chaos -minutes 5 -seed 7 -report report.md
//
// # What happens
//
// Emitters emit in every way there is, at a steady rate, and pause while the
// backlog shows that the machine cannot bear it. A plan, drawn from the
// seed, kills workers, cron processes, Postgres and the emulator with kill -9,
// stops them past the lock timeout and lets them go on, restarts them with
// SIGTERM, and cuts, delays and freezes their connections, also in the middle of
// a commit. In runs of ten minutes and more, some outages of Pub/Sub and some losses of
// Postgres' answers last for 60 to 90 seconds. Handlers are paused and blocked all the
// while, and an operator cancels, delays and has tried now what waits, by id and by filter.
//
// A fifth of the events has an ordering key, some have a unique key that others
// repeat, one handler has a concurrency limit on one canvas, an exact rate limit on another,
// and an approximate one on a third. Some events are typed: their completion emits one event for
// each of their handlers (chains.go). Some rows are written by hand and odd in one column: such that run,
// such that nobody can run, and such that the table refuses (odd.go). Other programs give
// the database and the role defaults of theirs, and some emits are on a pool that the queue has not
// opened (defaults.go).
//
// At the end the faults stop, the rate limits go, and everything must come to rest: the number of events that are
// left may stand still for -drain at most. Rows that nobody can run are left.
//
// # Steady runs
//
// With -steady it runs for hours, at a rate that should be lower, and one fault a minute, each kind in turn.
// Two workers and a cron process live through all of it: they are frozen and cut off, and never ended, and
// one that ends by itself fails the run. Package growth measures them and the database, and the verdict ends
// with what goes on growing: growth=none, growth=goroutines(w1),table(events_v2), or growth=undecided. The
// rate limits let through more than what comes, so that nothing piles up before them.
//
//	cd test/attack && go run ./chaos -steady -hours 1 -rate 100
//
// All that happened is remembered until it is checked, an hour of that rate in about a gigabyte of memory
// and one of the disk.
//
// # How it is checked
//
// By records that are not the queue's, which package check compares with what has to hold.
//
// # Failures
//
// The last line is the verdict. The exit status is 0 when nothing was found, 1
// when something was or when the run itself failed, 2 for a wrong command line.
// After a violation the logs and journals of all processes are retained, and the
// program reports where. SIGINT ends the load and the faults, and the verdict is
// about what was done so far; a second one ends the program at once. No process
// outlives the program, however it ends.
package main
