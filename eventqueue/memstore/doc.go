// Package memstore is the queue's database within one process: it implements
// [eventqueue.EmitStore], [minutes.Store], [worker.Store], [maintenance.RelayStore],
// [maintenance.UniqueStore], [maintenance.WaitingStore], [operate.RuleStore],
// [operate.RateStore] and [operate.ChangeStore] without Postgres. It serves unit tests of handlers.
//
// # Use
//
//	store := memstore.New(memstore.Config{})
//	queue, err := eventqueue.New(store, notifier, eventqueue.QueueConfig{})
//	worker, err := worker.New(queue, store, notifier, handlers, worker.Config{})
//
// [Store.Events], [Store.Log] and [Store.Rules] show what is committed, and
// Config.Observe is called with each change of a row, as a trigger would be. [Store.Connect]
// gives each simulated program a Store of its own on the same database, with its
// own [Faults].
//
// # Guarantees
//
// Every operation returns the same result, and leaves the same rows, as the SQL of package
// pgstore on Postgres. A property test runs the same operations on both and compares
// them after each. Times have the resolution of Postgres, a microsecond, and come from
// Config.Clock alone; with the default clock a Store follows the clock of
// testing/synctest. Nothing runs in the background.
//
// If Postgres does not define an order, a Store uses that of the ids, so that a run can
// be repeated exactly.
//
// # Transactions
//
// [Store.InTx] and [Store.Begin] return a [Tx]. It has no SQL engine: its SQL methods
// return [ErrNoSQL]. But it can be passed to everything that takes an eventqueue.DB, and
// [OnCommit] adds other effects to it. Other callers do not see its writes before the
// commit. An event that it has completed stays locked until it ends: claims, renewals,
// other completions, the relay and lifted rules skip the event, as with SKIP LOCKED, so
// no call waits for a transaction. As in Postgres, a failed operation undoes its whole
// transaction, whose commit is then refused with pgx.ErrTxCommitRollback.
//
// # Failures
//
// Without [Faults] an operation fails if its context has ended, or if Postgres would
// refuse the data (with a *pgconn.PgError that has Postgres' SQLSTATE). Faults make
// operations fail before they have an effect, or afterwards, so that the caller does not
// know the outcome. [Store.Disconnect] breaks all open connections, as the death of a
// program does.
//
// There are two differences to Postgres: a claim is one step, so no claim is running when
// a rule is added; and database/sql is not supported.
package memstore
