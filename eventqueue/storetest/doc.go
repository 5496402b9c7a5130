// Package storetest is the suite that every store of the queue passes: the one in
// Postgres and the one in memory. It is the contract of the interfaces that packages
// eventqueue, worker, maintenance and control have for their store, one rule a case. The
// property test in test/model checks that the two stores do the same for any sequence of
// calls.
//
// # Guarantees
//
// The cases use only the interfaces and depend on no particular store. They do not wait: a
// lock counts as expired if the caller passes a lock timeout of zero.
//
// # Failure handling
//
// Every case opens a store of its own and runs in parallel with the others.
package storetest
