// Package memcron keeps cron definitions and records within one process, beside a
// memstore database: a [Store] is a cronchecker.Store without Postgres, for
// simulations and unit tests.
//
// # Guarantees
//
// A slot's event and its record commit together, in the transaction of the emit.
// A definition that one checker is emitting for is left out by the others until
// that transaction has ended, and whoever changes it waits (I10). The clock is
// the database's.
//
// # Failures
//
// They are those of the memstore.Store that a Store was connected with: its
// faults are asked for OpLoad and OpLock as well as for the operations of the
// queue, and its Disconnect gives back what a checker holds.
package memcron
