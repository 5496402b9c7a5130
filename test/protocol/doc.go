// Package protocol holds tests of the worker and the relay, one rule at a time: what they do
// with what a store and a notifier answer, and when. It has no code. What the statements of the
// real store do is tested beside them, in package pgstore.
//
// # Guarantees
//
// The store and the notifier do what the test says, in virtual time (testing/synctest). Each
// test fails soon when its rule is broken: it waits for one of two things, the right one and
// the wrong one, and never for a deadline. That is what the mutation gate (package mutants)
// needs of the tests that it runs.
package protocol
