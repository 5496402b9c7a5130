// Package model_test holds the stores in memory and those on Postgres together:
// stateful property tests drive memstore and pgstore, and memcron and cronchecker,
// with the same operations, chosen at random, and compare after each one what it
// returned and every column of every row.
//
// # What is driven
//
// All operations of eventqueue's EmitStore, worker.Store, RelayStore, RuleStore,
// ConcurrencyLimitStore and RateStore except Listen; of crons the whole pass of a checker, its store, and the changes
// of definitions. The inquiries and the retry of eventctl have no counterpart in
// memory.
//
// # The clock
//
// Both have the same clock, which moves only when the test says so. In Postgres a
// function clock_timestamp in a schema of the test's own, which stands before
// pg_catalog in the search path, takes the place of the real one; pgstore's SQL is
// run as it is. So times are compared to the microsecond, and comparisons of times
// are tested where they are equal, and nothing depends on how fast the machine is.
//
// # Concurrency
//
// Some operations are several at once: claims, ends, relays and checkers that
// overlap. Which of them wins is up to Postgres; the test checks that the answers
// are ones that some order would give, has the model follow the winner, and
// compares the rows as always. Other operations run, in a fixed order, while a
// transaction is open that has ended events or is claiming some, or is emitting
// for a cron; it commits or is rolled back later.
//
// # Plans
//
// What a statement does must not depend on how Postgres carries it out. The
// statistics say, again and again, that the queue has a single row, which has the
// planner choose loops that it would not choose otherwise.
//
// # Running it
//
//	go test ./test/model                              600 sequences of 50 steps on average
//	go test ./test/model -timeout=2h -sequences=20000
//	go test ./test/model -short                       400, of 25 steps
//	go test ./test/model -run=… -rapid.seed=…         one that failed, as the failure says
//
// It ends with the numbers of sequences and steps. -rapid.checks, where it is
// given, counts the sequences of each of the parallel databases. When two stores
// differ, the test prints the shortest sequence that it could find. A sequence
// with a race in it need not repeat itself.
package model_test
