package dashboard

import (
	"fmt"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
)

// What is counted is shown for a time: that of handlers is shorter, as there may be thousands of rows a minute.
const (
	shownFor    = time.Hour
	handlersFor = 15 * time.Minute
)

// rateOf is how many runs have ended per minute of a time.
func rateOf(sum *inspect.Minute, of time.Duration) string {
	rate := float64(sum.Completed+sum.Failed+sum.Retried) / of.Minutes()
	if rate == 0 || rate >= 10 {
		return count(int64(rate + 0.5))
	}
	return fmt.Sprintf("%.1f", max(rate, 0.1))
}

// errorsOf is the share of the runs that have failed.
func errorsOf(sum *inspect.Minute) string {
	runs := sum.Completed + sum.Failed + sum.Retried
	if runs == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(sum.Failed+sum.Retried)/float64(runs))
}

// pendingTexts are how many events were pending in the last minutes in which that was counted, and for how long the oldest due one had
// been due; a dash where they were not counted.
func pendingTexts(minutes []inspect.Minute, now time.Time) (pending, oldest string) {
	for i := len(minutes) - 1; i >= 0 && now.Sub(minutes[i].Begins) < 4*time.Minute; i-- {
		if m := &minutes[i]; m.Pending != nil {
			if m.OldestDue == nil {
				return count(*m.Pending), "none due"
			}
			return count(*m.Pending), humantime.Age(*m.OldestDue)
		}
	}
	return "–", "–"
}
