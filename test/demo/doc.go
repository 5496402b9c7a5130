// Demo shows the event queue at work on one machine: the programs of cmd/worker
// and cmd/cron as child processes, a real Postgres, a notifier, and a web server
// of its own as the target of all events.
//
//	make demo
//	make demo INPUT=events.ndjson
//
// # What happens
//
// It finds or starts Postgres and a Pub/Sub emulator (package services; without
// an emulator, or with -notifier memory, the fake server of the Pub/Sub library
// runs in this process), makes a database of its own, migrates it, builds both
// programs and starts three workers and a cron process, configured by their
// environment as in production. Then, in this order:
//
//   - It pauses one handler, emits the first part of the input and shows that the
//     events of the paused handler wait while the others end; then it unpauses.
//   - It emits the rest, kills the busiest worker with SIGKILL while that worker
//     has events in hand, starts another one, and shows that the events of the
//     dead one are run by the others.
//   - All along the target answers every eighth event with an error the first
//     time, so that retries happen. Of the built-in sample it refuses two for
//     good.
//
// # Guarantees
//
// The last line is the verdict:
//
//	demo: emitted=N completed=N failed=F lost=0 duplicates=D seconds=S
//
// lost counts emitted events that are neither COMPLETED nor FAILED in event_log,
// and those that are COMPLETED though the target never did them. duplicates
// counts how often the target did an event again; each overlaps the killed
// worker, which had no time to say that it was done. seconds is the time from
// the first emit to the last event's end. The exit status is
//
//	0    nothing was lost and every body was byte for byte what was emitted
//	1    something was lost, or differed, or the demo could not run
//	2    bad input or bad options, found before anything was started
//	130  stopped by a signal
//
// Whatever was started is stopped at the end, also when a signal stops the demo,
// and ends by itself when the demo is killed. A database that DATABASE_URL names
// is only used to make a new one beside it, which is dropped at the end; a demo
// that is killed with SIGKILL leaves it (its name begins with eventsv2_demo_), and
// its temporary directory (eventsv2-demo-…) with the programs and logs.
//
// # Failures
//
// When anything fails, the logs of the children are kept and their directory is
// named. Everything that is waited for has a deadline that grows with the input;
// what is still waiting then counts as lost.
package main
