// Command mutants is the mutation gate: it makes one small wrong change of the
// protocol at a time (a guard taken out of a statement, the heartbeat off, a
// delay cut short) and demands that a test notices.
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
// A mutant replaces text that stands exactly once in its file. The changed copy
// lies in a temporary directory, so the product has no switches and the checkout is
// not touched. Only the package of that file is compiled, and linked with what the go
// command has compiled of the others; where the linker finds that these would have been
// compiled differently, the go command builds it all, with -overlay. Each mutant
// names the tests that must notice it; first they must pass without it.
//
// # What counts as killed
//
// One of the named tests has failed by its own judgement. A mutant that does not
// apply any more (somebody changed the text), does not compile, makes the tests
// panic or run out of time is not killed: it fails the gate, with a line that
// says what to do. When the same change has moved, move the mutant along; when
// the rule is gone from the protocol, take the mutant out.
//
// # Adding a mutant
//
// Add it to the list of its package and run it with -only. If it survives, write
// the test that notices, in package protocol if it fits nowhere else: it must
// fail soon, not by a deadline. Slower judges (a simulation, a model) are named
// in the same way, behind the fast ones, in judges.go.
//
// The tests run on the Postgres that package services finds or starts.
package main
