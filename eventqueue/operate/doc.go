// Package operate has the operations of operators and admin pages: [Rules] pauses and blocks
// handlers, [ConcurrencyLimits] bounds how many events run at once, [RateLimits] how many begin per
// minute and day, and a [Changer] cancels, deletes and edits events, has them tried now, and moves failed and
// cancelled ones back into the queue. Every operation may be repeated (I14). Events that may run because of it are notified at once.
//
// [Operations] change many events in the background: they cancel, delete, run, edit, retry or replay those that a
// filter selects, and have their results counted. An operation is counted first and begins when it is confirmed:
//
//	operation, err := operations.Count(ctx, by, identity, operate.Change{Verb: operate.VerbRetry, Filter: filter})
//	// show operation.Counted, and ask
//	operation, err = operations.Confirm(ctx, by, identity, operation.ID)
//	// and later, for progress
//	operation, err = operations.Get(ctx, operation.ID)
//
// [Operations.Run] works on what is confirmed, in as many programs as there are: one at a time on each
// operation.
//
// # Guarantees of operations
//
//   - What is confirmed is what was counted: the filter and the change are stored, only the same identity can
//     confirm them, within ConfirmWithin, and events that came in after the count are left alone.
//   - An operation is a row, with its progress. When its program dies, another one, or the same when it has come
//     back, goes on after LeaseFor. What was done is not done again, but for the last piece, and that is harmless:
//     each change may be repeated. A replay could not: it writes its progress in the transactions that emit, so that an operation
//     emits no event twice.
//   - Each piece is a transaction with a row in the audit log, and so are the confirmation and the end: their
//     Operation is the operation's ID.
//   - Operations take turns, so that a short one does not wait for the end of a long one.
package operate
