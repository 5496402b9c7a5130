// Command mutants tests the tests: it makes one small wrong change of the protocol at a time (a condition is removed from
// a statement, the heartbeat is switched off, a delay is shortened), and requires that a test fails.
//
//	go run ./test/mutants              # all of them
//	go run ./test/mutants -list        # their names, and the invariants that they break
//	go run ./test/mutants -only NAME   # one, or several with commas between
//	go run ./test/mutants -record      # and write who noticed, so that they are tried first
//
// It prints a line per mutant and ends with
//
//	mutants: N killed: N
//
// and status 0, or status 1 when a mutant survived or could not be judged.
//
// # How it works
//
// A mutant replaces a text that occurs exactly once in its file. The changed copies are in a temporary directory, so the
// product has no switches and the checkout is not changed. All mutants are compiled together: each changed function has
// the bodies of its mutants beside its own, and an environment variable selects one. SQL of the migrations is changed
// where the program reads it.
//
// A mutant is judged by all tests of the package that it changes, and then by those of the packages that import it,
// until one fails. noticed.txt names the test that noticed last; it is tried first. The file is written with -record and
// never by hand: a line that is missing or out of date costs time, and nothing else.
//
// # What counts as killed
//
// A mutant is killed if a test has failed by its own check, which passes without the mutant. It is not killed if it makes
// the tests panic or run out of time. A mutant that no longer applies (because the text has changed) or does not compile
// ends the run with its name. If the code has moved, change the mutant accordingly; if the rule no longer exists in the
// protocol, delete the mutant.
//
// # Adding a mutant
//
// A mutant here encodes a rule of docs/guarantees.md that a wrong change could break; there are 300 at most. What only
// changes a pure function is left to gremlins, which makes mutants by itself (make mutants-all). Add it to the list of
// its part and run it with -only. If it survives, write a test that fails with it, where docs/architecture.md says that
// it belongs. The test must fail soon, and not by a deadline.
//
// The tests run on the Postgres that package services finds or starts.
package main
