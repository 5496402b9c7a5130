// Command worker is a worker of the chaos run: it embeds worker.Worker as
// any program may, with handlers that do what the values of their events ask for
// (package task) and record every start and end in a journal outside the database
// (package journal).
//
// It is configured by the same environment as cmd/worker, without a
// handlers file, and by CHAOS_JOURNAL, the file to write to. With CHAOS_REPORTS it writes its size to
// its standard output (package growth). It exists only to be attacked.
//
// # Failures
//
// It ends with status 1 when it cannot start. A journal that cannot be written
// fails the run, which is then tried again.
package main
