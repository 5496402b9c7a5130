package dashboard

import (
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/humantime"
)

// What is counted is shown for a time: that of handlers is shorter, as there may be thousands of rows a minute.
const (
	shownFor    = time.Hour
	handlersFor = 15 * time.Minute
)

// lastHour are those of some minutes that lie in the last hour.
func lastHour(minutes []inspect.Minute, now time.Time) []inspect.Minute {
	first, _ := slices.BinarySearchFunc(minutes, now.Add(-shownFor).Truncate(time.Minute), func(m inspect.Minute, t time.Time) int { return m.Begins.Compare(t) })
	return minutes[first:]
}

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

// oldestDue is for how long the oldest due event of a sum had been due when what is pending was counted; a dash if that is not known.
func oldestDue(sum *inspect.Minute) string {
	switch {
	case sum.Pending == nil:
		return "–"
	case sum.OldestDue == nil:
		return "none due"
	default:
		return humantime.Age(*sum.OldestDue)
	}
}
