package lograte_test

import (
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/internal/lograte"
)

// TestLinesAreBoundedByTheirKind, those that were left out are counted once, and afterwards lines are written again.
func TestLinesAreBoundedByTheirKind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines lograte.Lines
		written, left := map[string]int{}, map[string]int{}
		send := func(kind string, n int) {
			for range n {
				lines.Write(kind, func() { written[kind]++ }, func(lines int) { left[kind] += lines })
			}
		}
		send("flood", 10_000)
		send("rare", lograte.Most)
		if written["flood"] != lograte.Most || written["rare"] != lograte.Most || len(left) != 0 {
			t.Errorf("written were %v, left out %v", written, left)
		}
		time.Sleep(lograte.Within)
		synctest.Wait()
		if left["flood"] != 10_000-lograte.Most || len(left) != 1 {
			t.Errorf("left out were %v", left)
		}
		send("flood", 1)
		if written["flood"] != lograte.Most+1 {
			t.Errorf("written were %v", written)
		}
	})
}
