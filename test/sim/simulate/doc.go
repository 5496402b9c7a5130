// Simulate runs the simulation of package sim over a range of seeds.
//
//	go run ./test/sim/simulate [-seeds N] [-first K] [-trace] [-twice]
//
// It prints each violation with its evidence, the end of its seed's trace and
// the command that repeats it; then how often each fault was made and each
// arrow of the diagram was followed, and a digest of the traces, which is the same
// wherever the same code simulates the same seeds; and ends with the line
//
//	sim: seeds=N events=E violations=V
//
// -trace prints what happened in each seed, line by line. -twice simulates each
// seed a second time and compares the traces. The exit status is 0 without
// violations, 1 with some, or when a seed could not be run or gave two different
// traces, and 2 for wrong options.
package main
