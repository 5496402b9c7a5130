// Package eventctl is the operator's command line: it migrates the database, emits
// events, pauses, blocks and limits handlers, shows what waits, runs, is stuck and
// failed, has it tried again, deletes old history, and manages cron definitions. See
// docs/eventctl.md. [Run] is the whole program; cmd/eventctl is its process.
//
// Each command is a file of its own, with a function that makes it, and a line in
// commands.go. What commands share (flags, connections, results, exit statuses) knows
// none of them.
//
// # Guarantees
//
// Bad input is found before anything is written, in a file of a million events as in a
// flag. States and ages are decided by the database's clock. What an event, a name or an
// error holds reaches a terminal only in printable form. Every command has one exit
// status for each kind of end, and with --json writes one JSON document to standard
// output.
//
// # Failures
//
// A command that is interrupted or fails half-way ends between two batches and says how
// much it has done. What it wrote stays: events that were emitted are committed, and
// notifications that it did not publish are pending, so that the relay publishes them.
package eventctl
