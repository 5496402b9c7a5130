package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"eventsv2/test/command"
	"eventsv2/test/sim"
)

// run is what came of the seeds so far.
type run struct {
	options
	out io.Writer

	mu                        sync.Mutex
	done                      uint64
	events, steps, violations int
	parted                    int    // seeds that gave two different traces
	digest                    uint64 // of all traces, in any order
	faults, outcomes          map[string]int
	findings                  command.Findings
}

func newRun(out io.Writer, o options) *run {
	return &run{options: o, out: out, faults: map[string]int{}, outcomes: map[string]int{}}
}

// all simulates the seeds, as many at once as there are processors, and tells
// whether none broke a promise.
func (r *run) all(t *testing.T) bool {
	t.Run("of", func(t *testing.T) {
		for seed := r.first; seed < r.first+r.seeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r.one(t, seed)
			})
		}
	})
	r.sayCounts("faults", r.faults)
	r.sayCounts("outcomes", r.outcomes)
	r.say("traces: steps=%d digest=%016x", r.steps, r.digest)
	if r.twice {
		r.say("traces twice: compared=%d different=%d", r.done, r.parted)
	}
	r.findings.Print(r.out)
	r.say("sim: seeds=%d events=%d violations=%d", r.done, r.events, r.violations)
	return r.violations == 0 && r.parted == 0 && r.done == r.seeds
}

// one simulates a seed. A bubble that deadlocks panics; the seed counts as one
// that could not be run then.
func (r *run) one(t *testing.T, seed uint64) {
	defer func() {
		if problem := recover(); problem != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.find("seed %d could not be run: %v\n%s", seed, problem, repeat(seed))
		}
	}()
	result := sim.Run(t, seed)
	difference := ""
	if r.twice {
		difference = sim.Part(result.Trace, sim.Run(t, seed).Trace)
	}
	r.add(result, difference)
}

func (r *run) add(result sim.Result, difference string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.events += result.Events
	r.steps += result.Steps
	r.digest += digest(result.Trace)
	r.violations += len(result.Violations)
	for kind, n := range result.Faults {
		r.faults[kind] += n
	}
	for label, n := range result.Outcomes {
		r.outcomes[label] += n
	}
	if r.trace {
		r.say("%s", strings.Join(result.Trace, "\n"))
	}
	for _, v := range result.Violations {
		r.find("seed %d: %v", result.Seed, v)
	}
	if len(result.Violations) > 0 {
		r.say("seed %d: the end of its trace:\n    %s\n    %s", result.Seed, strings.Join(tail(result.Trace), "\n    "), repeat(result.Seed))
	}
	if difference != "" {
		r.parted++
		r.find("seed %d gave two traces: %s\nrepeat with: go run ./test/withservices -- go run ./test/sim/simulate -first %d -seeds 1 -twice", result.Seed, difference, result.Seed)
	}
}

// digest is a number that tells a trace from others.
func digest(trace []string) uint64 {
	h := fnv.New64a()
	for _, line := range trace {
		_, _ = io.WriteString(h, line+"\n") // never fails
	}
	return h.Sum64()
}

// tailLines is how much of a trace is shown.
const tailLines = 25

func tail(trace []string) []string { return trace[max(len(trace)-tailLines, 0):] }

func repeat(seed uint64) string {
	return fmt.Sprintf("repeat with: go run ./test/withservices -- go run ./test/sim/simulate -first %d -seeds 1 -trace", seed)
}

// sayCounts prints counts, a line each.
func (r *run) sayCounts(title string, counts map[string]int) {
	r.say("%s:", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		r.say("  %8d %s", counts[name], name)
	}
}

// find prints what is wrong, now and once more at the end.
func (r *run) find(format string, args ...any) {
	r.say(format, args...)
	r.findings.Add(format, args...)
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.out, format+"\n", args...) // there is nowhere else to say it
}
