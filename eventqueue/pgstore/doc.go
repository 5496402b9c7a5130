// Package pgstore is the queue in Postgres. Each statement stands
// directly above the function that runs it. Ordering groups are advanced by an SQL
// function, which a migration creates.
//
// # Guarantees
//
// One statement asks about and claims a batch of events, and its clock is the
// database's (I4, I6). Every write after a claim names the claim's token in its
// WHERE clause, and its result names the claims that were still valid (I5). Adding a
// rule waits for the claims that began before it (I7). Statements that lock
// several rows take them in the order of their ids or skip those that are
// locked, or give way after 100 ms, so that no two of them block each other for
// good.
//
// # Failures
//
// Only a statement that waited too long for a row lock is run again here
// (lockwait.go). Any other error means that the statement did not happen or that
// its outcome is unknown; the callers handle both. A connection made by Open gives
// up on a statement after a minute, on a lock after ten seconds and on an
// unresponsive server after twenty. It refuses a server that cannot write.
package pgstore
