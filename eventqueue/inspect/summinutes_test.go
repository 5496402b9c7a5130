package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/eventqueue/minutes"
)

// TestLastCountOfWhatIsPendingHolds while it is young, and 0 for as long as nothing is counted; without one it is not known.
func TestLastCountOfWhatIsPendingHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 30, 0, time.UTC)
	scope := eventqueue.Scope{Module: "M", Name: "a"}
	const none = -1
	minute := func(ago int, pending int64) inspect.Minute {
		m := inspect.Minute{Begins: now.Truncate(time.Minute).Add(-time.Duration(ago) * time.Minute), AsOf: now, Counts: minutes.Counts{Scope: scope, Completed: 1}}
		if pending != none {
			m.Pending = &pending
		}
		return m
	}
	for name, test := range map[string]struct {
		minutes []inspect.Minute
		want    string
	}{
		"the last one":                    {[]inspect.Minute{minute(2, 7), minute(1, 5), minute(0, none)}, "5, 1 minutes ago"},
		"0 after another":                 {[]inspect.Minute{minute(2, 139), minute(1, 0)}, "0, 1 minutes ago"},
		"one that is old":                 {[]inspect.Minute{minute(4, 7), minute(0, none)}, "not known"},
		"0 that is old":                   {[]inspect.Minute{minute(50, 139), minute(40, 0)}, "0, 40 minutes ago"},
		"0, and counts that it is not of": {[]inspect.Minute{minute(40, 0), minute(30, none)}, "not known"},
		"none":                            {[]inspect.Minute{minute(1, none)}, "not known"},
	} {
		sums := inspect.SumMinutes(test.minutes)
		if len(sums) != 1 || sums[0].Completed != int64(len(test.minutes)) {
			t.Fatalf("%s: the sums are %+v", name, sums)
		}
		got := "not known"
		if sum := &sums[0]; sum.Pending != nil {
			got = fmt.Sprintf("%d, %d minutes ago", *sum.Pending, now.Sub(sum.CountedAt)/time.Minute)
		} else if !sum.CountedAt.IsZero() {
			got += ", and counted"
		}
		if got != test.want {
			t.Errorf("%s: pending are %s, want %s", name, got, test.want)
		}
	}
}
