// Package audit is the log of what operators change: who, from where, what, and how it was before
// and after.
//
// # Guarantees
//
// A row is written by the transaction of its change: there is no change without its row, and no row
// without its change. A request that changes nothing has none. Rows are never updated; Prune
// deletes those beyond an age.
//
// # What it has of events
//
// Of a change of up to MaxDetailed events, the log has each as it was and as it is; their values as
// well, up to MaxValueBytes each. Of more, it has their ids. [Entry.WithoutValues] takes the values
// out for readers who may not see them.
package audit
