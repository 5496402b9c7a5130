// Command bench measures this project beside River on one Postgres, in one run:
//
//	go run . [-rounds 3] [-only drain,emit] [-profile DIR] [-write ../docs]
//	go run . -smoke
//
// Both sides run the same experiments in turns: round by round, one after the
// other, each in an empty database of its own. The figures that count are ratios
// of one round, of which the median is reported; how busy the rest of the machine
// was is printed beside each run.
//
// -smoke needs no peer and no quiet machine: it checks the counts that do not
// depend on the machine (statements and bytes of write-ahead log per event, no
// statement while idle), and fails when one is too high.
package main
