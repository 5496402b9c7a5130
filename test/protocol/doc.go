// Package protocol holds tests of the protocol between a worker and the rows of
// the queue, one rule at a time: what may be claimed, which writes the fence
// refuses, when a notification comes back, which notifications are pending. It has no code.
//
// # Guarantees
//
// Each test fails soon when its rule is broken: it waits for one of two things,
// the right one and the wrong one, and never for a deadline. That is what the
// mutation gate (package mutants) needs of the tests that it runs.
//
// The tests of statements run on a real Postgres, whose clock they move by
// putting a clock_timestamp of their own before the built-in one. The tests of
// the worker and the relay run on a store and a notifier that do what the test says,
// in virtual time (testing/synctest).
package protocol
