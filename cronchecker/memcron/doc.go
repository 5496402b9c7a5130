// Package memcron keeps cron definitions and their records in the memory of one process.
// Its [Store] is a cronchecker.Store that emits into a memstore.Store instead of
// Postgres, for simulations and unit tests.
//
// # Guarantees
//
// A slot's event and its record commit together, in the transaction of the emit.
// While one checker emits for a definition, other checkers skip it until that
// transaction has ended, and changes of it wait (I10). The clock is the database's.
//
// # Failures
//
// A Store has the failures of the memstore.Store that it was connected with: the faults
// of that store apply to OpLoad and OpLock as well as to the operations of the queue,
// and its Disconnect releases the locks of a checker.
package memcron
