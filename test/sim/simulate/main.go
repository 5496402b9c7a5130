// Simulate runs the simulation of package sim over a range of seeds.
//
//	go run ./test/sim/simulate [-seeds N] [-first K] [-trace]
//
// It prints each violation with its evidence and the command that repeats it,
// and ends with the line
//
//	sim: seeds=N events=E violations=V
//
// -trace prints what happened in each seed, line by line. The exit status is 0
// without violations, 1 with some or when a seed could not be run, and 2 for
// wrong options.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"eventsv2/test/sim"
)

func main() {
	testing.Init() // a bubble of synctest needs a test to live in
	seeds := flag.Uint64("seeds", 300, "how many seeds to simulate")
	first := flag.Uint64("first", 1, "the first seed")
	trace := flag.Bool("trace", false, "print the trace of each seed")
	flag.Parse()
	if flag.NArg() > 0 || *seeds == 0 {
		flag.Usage()
		os.Exit(2)
	}
	run := &run{out: os.Stdout, first: *first, seeds: *seeds, trace: *trace}
	tests := []testing.InternalTest{{Name: "seeds", F: func(t *testing.T) {
		if !run.all(t) {
			os.Exit(1)
		}
		os.Exit(0) // before the package testing has its say
	}}}
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

// run is what was asked for, and what came of it.
type run struct {
	out          io.Writer
	first, seeds uint64
	trace        bool

	mu                        sync.Mutex
	done                      uint64
	events, steps, violations int
}

// all simulates the seeds, as many at once as there are processors, and tells
// whether none broke a promise.
func (r *run) all(t *testing.T) bool {
	t.Run("of", func(t *testing.T) {
		for seed := r.first; seed < r.first+r.seeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r.one(sim.Run(t, seed))
			})
		}
	})
	say(r.out, "steps: %d", r.steps)
	say(r.out, "sim: seeds=%d events=%d violations=%d", r.done, r.events, r.violations)
	return r.violations == 0 && r.done == r.seeds
}

func (r *run) one(result sim.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.events += result.Events
	r.steps += result.Steps
	r.violations += len(result.Violations)
	if r.trace {
		for _, line := range result.Trace {
			say(r.out, "%s", line)
		}
	}
	for _, v := range result.Violations {
		say(r.out, "seed %d: %v\n    repeat with: go run ./test/sim/simulate -first %d -seeds 1 -trace", result.Seed, v, result.Seed)
	}
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...) // there is nowhere else to say it
}
