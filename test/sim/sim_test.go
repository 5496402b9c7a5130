package sim_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"eventsv2/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeds is how many seeds a plain test run simulates.
const seeds = 300

func TestSeeds(t *testing.T) {
	t.Parallel()
	n := uint64(seeds)
	if testing.Short() {
		n = 20
	}
	for seed := uint64(1); seed <= n; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			r := sim.Run(t, seed)
			for _, v := range r.Violations {
				t.Errorf("%v\nrepeat with: go run ./test/sim/simulate -first %d -seeds 1 -trace", v, seed)
			}
			if r.Events == 0 {
				t.Error("nothing was emitted: the seed proves nothing")
			}
		})
	}
}

// The same seed gives the same trace, line by line.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	for seed := uint64(1001); seed <= 1020; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			first, second := sim.Run(t, seed).Trace, sim.Run(t, seed).Trace
			for i := range max(len(first), len(second)) {
				if a, b := line(first, i), line(second, i); a != b {
					t.Fatalf("the traces part at line %d:\n%s\n%s", i+1, a, b)
				}
			}
		})
	}
}

func line(trace []string, i int) string {
	if i < len(trace) {
		return trace[i]
	}
	return "(the end)"
}
