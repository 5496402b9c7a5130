// Package eventctl is the operator's command line. It migrates the database, emits events,
// pauses, blocks and limits handlers, shows events that wait, run, are stuck or have
// failed, retries them, deletes old history, and manages cron definitions. See
// docs/eventctl.md. [Run] is the whole program; cmd/eventctl only calls it.
//
// Each command has a file of its own, with a function that makes it, and a line in
// commands.go. The code that commands share (flags, connections, results, exit statuses)
// depends on none of them.
//
// # Guarantees
//
// Bad input is found before anything is written, be it a flag or a line in a file of a
// million events. The database's clock decides states and ages. Text from events, names and
// errors is escaped, so that a terminal gets printable characters only. All commands use
// the same exit statuses. With --json a command writes one JSON document to standard output.
//
// # Failures
//
// A command that is interrupted or fails half-way ends between two batches and reports how
// much it has done. Its writes stay: emitted events are committed, and notifications that
// it did not publish are pending, so that the relay publishes them.
package eventctl
