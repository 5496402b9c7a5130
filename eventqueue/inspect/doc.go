// Package inspect is the read side of the queue, for an operator's page and for eventctl. A
// [Reader] lists queued events and those in event_log, shows one of them, counts them by
// handler and state, and finds those that seem stuck.
//
// # Guarantees
//
// A Reader writes nothing and locks no row: it needs only the right to SELECT, and no worker
// waits for it. The result of a statement was true at one moment of the database's clock,
// which it returns as AsOf.
//
// # Failures
//
// An error means that nothing was read. A Reader tries nothing again.
package inspect
