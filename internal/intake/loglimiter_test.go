package intake_test

import (
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/internal/intake"
)

// TestLogLinesAreBoundedPerKind, those that were left out are counted once, and afterwards lines are written again.
func TestLogLinesAreBoundedPerKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines intake.LogLimiter
		written, left := map[string]int{}, map[string]int{}
		send := func(kind string, n int) {
			for range n {
				lines.Write(kind, func() { written[kind]++ }, func(lines int) { left[kind] += lines })
			}
		}
		send("flood", 10_000)
		send("rare", intake.LogBurst)
		if written["flood"] != intake.LogBurst || written["rare"] != intake.LogBurst || len(left) != 0 {
			t.Errorf("written were %v, left out %v", written, left)
		}
		time.Sleep(intake.LogWindow)
		synctest.Wait()
		if left["flood"] != 10_000-intake.LogBurst || len(left) != 1 {
			t.Errorf("left out were %v", left)
		}
		send("flood", 1)
		if written["flood"] != intake.LogBurst+1 {
			t.Errorf("written were %v", written)
		}
	})
}
