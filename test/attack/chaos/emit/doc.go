// Package emit emits the events of the chaos run, in every way there is: through the library, in transactions
// of its own and of others, as typed events, on a pool that the queue has not opened, and as rows
// that somebody writes by hand. It remembers what it was told of each of them.
//
// # Guarantees
//
// What is drawn depends on the seed alone. The end of the load is no reason for an unknown
// outcome: a call that has begun is waited for.
//
// # Failure handling
//
// A call that fails may have emitted its events; what became of them is found out at the end.
package emit
