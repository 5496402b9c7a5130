// Package pgstore is the queue in Postgres: every statement of the queue stands
// here, above its one caller. Turns in lines are given by an SQL function, which
// the migrations bring.
//
// # Guarantees
//
// One statement asks about and claims a batch of events, and its clock is the
// database's (I4, I6). Every write after a claim names the claim's token in its
// WHERE clause, and what it returns says which claims still held (I5). Adding a
// rule waits for the claims that began before it (I7). Statements that lock
// several rows take them in the order of their ids or skip those that are
// locked, or give way after 100 ms, so that no two of them block each other for
// good.
//
// # Failures
//
// Nothing is tried again here but a statement that lost its patience
// (patience.go): an error means that the statement did not happen or that its
// outcome is unknown, and the callers are written for both. Every
// connection that Open makes gives up on a statement after a minute, on a lock
// after ten seconds, on a server that vanished after twenty, and refuses a
// server that cannot write.
package pgstore
