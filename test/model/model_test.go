package model_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestModelEqualsSQL drives memstore and Postgres with the same operations.
func TestModelEqualsSQL(t *testing.T) {
	t.Parallel()
	for i := range databases {
		t.Run(fmt.Sprintf("database %d", i+1), func(t *testing.T) {
			t.Parallel()
			var settings map[string]string
			if i%2 == 1 {
				settings = strange
			}
			d := newDatabaseWith(t, settings)
			checkAll(t, func(t *rapid.T) {
				tried.sequences.Add(1)
				w := newWorld(t, d)
				defer w.close()
				w.agree(t)
				w.limited = rapid.Bool().Draw(t, "concurrencyLimits")
				t.Repeat(w.actions())
			})
		})
	}
}

// checkAll is rapid.Check, which ends early, and content, when the time of the
// test binary runs out.
func checkAll(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	began := 0
	rapid.Check(t, func(t *rapid.T) {
		began++
		property(t)
	})
	if want := checks(); began < want {
		t.Errorf("only %d of %d sequences were tried: give the test more time with -timeout", began, want)
	}
}
