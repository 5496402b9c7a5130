// Package growth measures a deployment while it is at work, and decides what goes on growing.
//
// # What is measured
//
// Every 15 seconds, more often in a run of less than an hour and less often in one of many hours: of
// each process the memory that is its own (RssAnon) and its open files; of those that report it (WriteSizes)
// the goroutines and the heap that a collection left; of this process goroutines and open
// files, not memory, since whoever judges a run remembers its events; of Postgres its client
// connections, the rows of events_v2, and of every table its size and that of its indexes. Left
// out are tables that are a record of what happened, and whatever the run itself adds.
//
// # What counts as growth
//
// The medians of four quarters of the run are compared; the first quarter is the
// warm-up and counts for nothing. A measure grows when all of this holds:
//
//   - the median of the last quarter is above that of the second by more than an
//     absolute and a relative allowance (measure.go), about twice the noise of a
//     run without leaks;
//   - it rises from the second to the third and from the third to the last
//     quarter, each time by at least a quarter of the whole rise: what rises in
//     one step and stays there does not go on growing;
//   - of the medians of 18 windows after the warm-up at least three quarters of
//     all pairs rise (Kendall's tau of 0.5 or more): noise and saw-teeth do not.
//
// A leak that stays below the allowances in half the length of a run is not
// found; a longer run finds smaller ones. Runs of less than ten minutes are all
// warm-up, and their growth is not decided.
//
// # Failure handling
//
// What cannot be measured at some moment, such as a database that is down, has no value then. It runs
// on Linux only, because it reads from /proc what processes use.
package growth
