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
// was emitted in it: package oracle judges what triggers have recorded of its row (package
// record, in a schema of its own), of rules and of concurrency limits, and the runs that the web
// server of this process saw, to which handlers post. What the scenario did to programs and to
// Postgres excuses what the oracle lets it excuse, and so does a machine that was too
// busy, which is measured beside each scenario (machine_slow).
//
// What the oracle has no invariant for is judged beside it (judge.go): no event is FAILED unless
// the scenario has its handler fail; no row is left at the end, lost its ordering key or was rewritten; each
// run has a claim, unless Postgres forgets claims; no attempt is used by a claim without a run; a run that ended
// well, or that its worker gave up, is repeated only if something was done to a process that had it,
// until two seconds after its end at most. Scenarios look at what handlers saw of order, of what runs
// at once and of what begins in a minute.
//
// The oracle does not judge here: I11, since notifications are not recorded; I13, since each
// scenario has its own bounds of seconds; rates, since the counters of a canvas do not say of which
// handler a run was; and crons, whose slots the scenarios count in SQL. In two-versions it does not
// judge I9 and I15 either: the version before has no suspects, and counts an attempt for each run
// that was lost. There at most one attempt more is used than there were runs for.
//
// # Times
//
// What is promised in seconds for a fault that lasts (the start of events while Pub/Sub fails, or
// beside what another canvas has) is checked against the promise itself, and for a crowd of
// thousands of events against twice the promise. A scenario that was
// only late, or has only repeated runs that nothing explains, as those of a program are that got no
// processor for the three seconds of a lock, is played again when all others have ended, and only that
// counts: so no other scenario, and no patience with a slow program, decides it. Where the promise is a moment (a
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
