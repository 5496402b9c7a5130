package pgstore_test

import (
	"testing"

	"eventsv2/test/testenv"
)

// TestCountersAtTheirMaximumAreRefused by the table.
func TestCountersAtTheirMaximumAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.insert(event())[0]
	for _, column := range []string{"attempts", "retries"} {
		if _, err := r.pool.Exec(testenv.Context(t), `UPDATE events_v2 SET `+column+` = 2147483647 WHERE id = $1`, id); err == nil {
			t.Errorf("%s may be 2147483647", column)
		}
	}
}
