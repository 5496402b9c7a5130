package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSamplesCoverAllMutants(t *testing.T) {
	t.Parallel()
	all, drawn := mutants(), map[string]bool{}
	for seed := range len(all) {
		sample := draw(all, 3, seed)
		if len(sample) != 3 || sample[0].name == sample[1].name || sample[1].name == sample[2].name {
			t.Fatalf("seed %d draws %s", seed, names(sample))
		}
		drawn[sample[0].name] = true
	}
	if len(drawn) != len(all) {
		t.Errorf("of %d mutants %d are ever drawn first", len(all), len(drawn))
	}
	for _, number := range []int{0, len(all), len(all) + 1} {
		if sample := draw(all, number, 7); len(sample) != len(all) {
			t.Errorf("a sample of %d has %d of %d mutants", number, len(sample), len(all))
		}
	}
}
