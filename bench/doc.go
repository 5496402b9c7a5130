// Command bench measures this project beside River on one Postgres, in one run:
//
//	go run . [-rounds 3] [-only drain,emit] [-profile DIR] [-write ../docs]
//	go run . -growth [-only workers,spread] [-write ../docs]
//	go run . -smoke
//
// Both sides run the same experiments alternately, round by round, each in an empty
// database of its own. The main figures are ratios within one round, of which the median
// is reported. For each run the program prints how busy the rest of the machine was.
//
// -growth has no peer: it measures what becomes of our side as it grows.
//
// -smoke needs no peer and no quiet machine: it checks the counts that do not
// depend on the machine (statements and bytes of write-ahead log per event, no
// statement while idle), and fails when one is too high.
package main
