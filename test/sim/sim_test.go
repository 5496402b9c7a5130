package sim_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"eventsv2/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// How many seeds a test run simulates once, and how many twice. The command
// simulate is for more of them.
const (
	once  = 20
	twice = 20
)

// No seed breaks a promise.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= once; seed++ {
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
	for seed := uint64(1011); seed < 1011+twice; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			if part := sim.Part(sim.Run(t, seed).Trace, sim.Run(t, seed).Trace); part != "" {
				t.Fatalf("the traces are not the same: %s", part)
			}
		})
	}
}
