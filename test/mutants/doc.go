// Command mutants tests the tests: it makes one small wrong change of the protocol at a
// time (a condition is removed from a statement, the heartbeat is switched off, a delay is
// shortened), and requires that a test fails.
//
//	go run ./test/mutants              # all of them
//	go run ./test/mutants -list        # their names, and which tests must notice
//	go run ./test/mutants -only NAME   # one, or several with commas between
//
// It prints a line per mutant and ends with
//
//	mutants: N killed: N
//
// and status 0, or status 1 when a mutant survived or could not be judged.
//
// # How it works
//
// A mutant replaces a text that occurs exactly once in its file. The changed copy is in a
// temporary directory, so the product has no switches and the checkout is not changed.
// Most mutants of a package's tests are compiled into one program, a bundle: each changed
// function has the bodies of its mutants beside its own, and an environment variable selects
// one. A mutant that changes something else, such as a type or SQL in a file of its own, has its
// package compiled by itself, and linked with the other packages as the go command has compiled
// them. If the linker finds that these would have been compiled differently, the go command
// builds everything, with -overlay. Each mutant names the tests that must fail with it; they must
// pass without it first.
//
// # What counts as killed
//
// A mutant is killed if one of the named tests has failed by its own check. A mutant is not
// killed if it no longer applies (because the text has changed), does not compile, or makes
// the tests panic or run out of time. The command then fails, with a line that says what to
// do. If the code has moved, change the mutant accordingly; if the rule no longer exists in
// the protocol, delete the mutant.
//
// # Adding a mutant
//
// Add it to the list of its package and run it with -only. If it survives, write a test that
// fails with it, where docs/architecture.md says that it belongs. The test must fail soon, and not
// by a deadline. Slower tests (a simulation, a model) are named in the same way, after the
// fast ones, in judges.go.
//
// The tests run on the Postgres that package services finds or starts.
package main
