package sim_test

import (
	"fmt"
	"testing"

	"eventsv2/test/sim"
	"eventsv2/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// No seed breaks a promise. The command simulate runs more of them, without the race detector five times as fast.
func TestSeeds(t *testing.T) {
	t.Parallel()
	for seed := uint64(4); seed <= 5; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			judge(t, sim.Run(t, seed))
		})
	}
}

func judge(t *testing.T, r sim.Result) {
	t.Helper()
	for _, v := range r.Violations {
		t.Errorf("%v\nrepeat with: go run ./test/withservices -- go run ./test/sim/simulate -first %d -seeds 1 -trace", v, r.Seed)
	}
	if r.Events == 0 {
		t.Error("nothing was emitted: the seed proves nothing")
	}
}
