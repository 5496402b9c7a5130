// Package memstore is the queue's database within one process: it implements
// [eventqueue.EmitStore], [worker.Store], [maintenance.RelayStore],
// [control.RuleStore], [control.RateStore] and [maintenance.UniqueStore] without
// Postgres. It serves unit tests of handlers and simulations.
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
// What an operation returns, and leaves in the rows, is what package pgstore's
// SQL on Postgres returns and leaves; a property test drives both with the same
// operations and compares them after each. Times have the resolution of
// Postgres, a microsecond, and come from Config.Clock alone; with the default one
// a Store obeys the clock of testing/synctest. Nothing runs in the background.
//
// Where Postgres leaves an order open, it is by id here, so that a run can be
// repeated exactly.
//
// # Transactions
//
// [Store.InTx] and [Store.Begin] give a [Tx]. It holds no SQL engine: its SQL methods
// return [ErrNoSQL], but it may be handed to whatever takes an eventqueue.DB,
// and [OnCommit] hangs other effects on it. What it writes is seen by nobody else
// before the commit. An event that it has completed stays locked until it
// ends: claims, renewals, other ends, the relay and lifted rules skip it, as SKIP
// LOCKED does, so nobody waits for a transaction. As in Postgres, an operation
// that fails within one undoes all of it, and its commit is refused with
// pgx.ErrTxCommitRollback.
//
// # Failures
//
// Without [Faults] an operation fails when its context has ended, and when
// Postgres would refuse the data (a *pgconn.PgError with Postgres' SQLSTATE).
// Faults make operations fail before they have happened, or afterwards, which is
// what an unknown outcome is. [Store.Disconnect] breaks what is open, as the death
// of a program does.
//
// What differs from Postgres: a claim is one step, so none is in flight when a
// rule is added; database/sql is not supported.
package memstore
