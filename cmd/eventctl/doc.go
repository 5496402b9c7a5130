// Command eventctl is the operator's command line: it migrates the database,
// emits events, pauses, blocks and limits handlers, shows what waits, runs, is
// stuck and failed, has it tried again, deletes old history, and manages cron
// definitions. See docs/eventctl.md.
//
// # Guarantees
//
// Bad input is found before anything is written, in a file of a million events
// as in a flag. States and ages are decided by the database's clock. What an
// event, a name or an error holds reaches a terminal only in printable form.
// Every command has one exit status for each kind of end, and with --json writes
// one JSON document to standard output.
//
// # Failures
//
// A command that is interrupted or fails half-way ends between two batches and
// says how much it has done. What it wrote stays: events that were emitted are
// committed, and notifications that it did not publish are owed, so that the
// relay publishes them.
package main
