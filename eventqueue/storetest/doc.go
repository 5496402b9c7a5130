// Package storetest is the suite that every store of the queue passes: the one in Postgres
// and the one in memory. It specifies the store interfaces of packages eventqueue, worker,
// maintenance and operate, with one case for each rule.
//
// # Guarantees
//
// The cases use only the interfaces and depend on no particular store. They do not wait: the
// store that is tested lets its locks expire on demand (ExpireLocks).
//
// # Failure handling
//
// Every case opens a store of its own and runs in parallel with the others.
package storetest
