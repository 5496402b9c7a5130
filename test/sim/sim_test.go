package sim_test

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"eventsv2/test/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// How many seeds a test run simulates once, and how many twice. The command
// simulate is for more of them. With the race detector each takes five times as long;
// make test runs both.
func seeds() (once, twice uint64) {
	if underRace {
		return 10, 5
	}
	return 20, 20
}

// No seed breaks a promise.
func TestSeeds(t *testing.T) {
	t.Parallel()
	once, _ := seeds()
	for seed := uint64(1); seed <= once; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			judge(t, sim.Run(t, seed))
		})
	}
}

// The same seed gives the same trace, line by line, and breaks no promise.
func TestSameSeedSameTrace(t *testing.T) {
	t.Parallel()
	_, twice := seeds()
	for seed := uint64(1011); seed < 1011+twice; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			r := sim.Run(t, seed)
			judge(t, r)
			if part := sim.Part(r.Trace, sim.Run(t, seed).Trace); part != "" {
				t.Fatalf("the traces are not the same: %s", part)
			}
		})
	}
}

func judge(t *testing.T, r sim.Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("%v\nrepeat with: go run ./test/sim/simulate -first %d -seeds 1 -trace", v, r.Seed)
	}
	if r.Events == 0 {
		t.Error("nothing was emitted: the seed proves nothing")
	}
}
