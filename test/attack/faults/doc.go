// Command faults runs each named scenario against the programs as they are
// deployed: cmd/worker, cmd/cron, eventctl, and a program that embeds the library
// as the documentation shows it (package embed), on a real Postgres and the
// official Pub/Sub emulator, with proxies between that make connections and single
// calls fail.
//
//	cd test/attack && go run ./faults            # all of them
//	cd test/attack && go run ./faults -list
//	cd test/attack && go run ./faults -only kill-9-at-defaults
//
// # How a scenario is judged
//
// A scenario is judged by the promise that it is named after, and by every event that
// was emitted in it. Each has to have completed exactly once, with the bytes that were emitted
// and not before its time: a row of event_log, no row of events_v2, and one run
// that ended well. A further run needs a reason: the one before it failed, the
// scenario did something to its process or to Postgres while it ran, or the machine was
// too busy then, which is measured beside each scenario (machine_slow). No event is
// FAILED unless the scenario has its handler fail, and no event is FAILED without a call
// of its handler. Handlers post to a web server in this process, which notes each
// run.
//
// # Times
//
// What is promised in seconds for a fault that lasts (the start of events while Pub/Sub fails, or
// beside what another canvas has) is checked against the promise itself, and for a crowd of
// thousands of events against twice the promise. A scenario that was
// only late is played again when all others have ended, and only that counts: so no other
// scenario, and no patience with a slow program, decides it. Where the promise is a moment (a
// second or two after which a program publishes again, ten until Pub/Sub is used again), a
// single wait of a busy machine would break it; there the limit is a multiple, and well
// below what a program took that broke the promise. Tests in virtual time hold those promises to
// the second.
//
// # Failures
//
// Each scenario is one line, the last line is the verdict. The exit status is 0
// when no scenario failed, 1 when one did or when they could not be run, 2 for a
// wrong command line. After a failure the logs of all its programs are kept, and
// the program says where. No process outlives the program, however it ends.
package main
