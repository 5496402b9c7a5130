// Package inspect is the read side of the queue: what an operator's page or eventctl
// shows. A [Reader] lists queued events and those in event_log, shows one of them,
// counts them by handler and state, and finds those that seem stuck.
//
// # Guarantees
//
// Nothing is written, and no row is locked: a reader needs only the right to SELECT, and no
// worker waits for it. The result of a statement was true at one moment of the
// database's clock, which it returns as AsOf.
//
// # Failures
//
// An error means that nothing was read. Nothing is tried again here.
package inspect
