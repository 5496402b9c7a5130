// Demo shows the event queue on one machine: the programs of cmd/worker and cmd/cron as
// child processes, a real Postgres, a notifier, and a web server of its own as the target
// of all events.
//
//	make demo
//	make demo INPUT=events.ndjson
//	make demo UI=1
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
//   - It emits the rest, kills the busiest worker with SIGKILL while that worker is
//     running events, starts another one, and shows that the other workers run the
//     events of the dead one.
//   - All along the target answers every eighth event with an error the first
//     time, so that retries happen. Of the built-in sample it refuses two for
//     good.
//
// With -ui it starts the dashboard as well (eventctl ui), and prints its address. After the
// verdict it goes on, with an event a second, until a signal stops it.
//
// # Guarantees
//
// The last line is the verdict:
//
//	demo: emitted=N completed=N failed=F lost=0 duplicates=D seconds=S
//
// lost counts emitted events that are neither COMPLETED nor FAILED in event_log, and
// those that are COMPLETED although the target never did them. duplicates counts how
// often the target did an event again; each of these is an event of the killed worker,
// which could not write its completion. seconds is the time from the first emit to the
// end of the last event. The exit status is
//
//	0    nothing was lost and every body was byte for byte what was emitted
//	1    something was lost, or differed, or the demo could not run
//	2    bad input or bad options, found before anything was started
//	130  stopped by a signal before the verdict
//
// Everything that the demo starts is stopped at the end, also after a signal, and ends by
// itself if the demo is killed. The demo does not use the database of DATABASE_URL, but
// makes a new one on the same server and drops it at the end. If the demo is killed with
// SIGKILL, this database stays (its name begins with eventsv2_demo_), and so does the
// temporary directory (eventsv2-demo-…) with the programs and logs.
//
// # Failures
//
// If anything fails, the logs of the children stay, and the demo names their directory.
// Every wait has a deadline that grows with the input; events that have not ended by then
// count as lost.
package main
