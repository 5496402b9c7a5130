// Package memcron has cron definitions and records in the memory of one process, with a
// memstore database: a [Store] is a cronchecker.Store without Postgres, for
// simulations and unit tests.
//
// # Guarantees
//
// A slot's event and its record commit together, in the transaction of the emit.
// While one checker emits for a definition, other checkers skip it until that
// transaction has ended, and changes of it wait (I10). The clock is the database's.
//
// # Failures
//
// They are those of the memstore.Store that a Store was connected with: its faults
// apply to OpLoad and OpLock as well as to the operations of the queue, and its
// Disconnect releases the locks of a checker.
package memcron
