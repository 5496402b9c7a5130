package dashboard

import (
	"net/http"
	"slices"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

const (
	// handlerFor is the time of the small line on the page of a handler; the charts are of its last hour.
	handlerFor = 6 * time.Hour
	// errorsShown is how many of its errors the page shows.
	errorsShown = 8
)

// handlerNumbers holds the runs, limits and errors on the page of a handler.
type handlerNumbers struct {
	// Counted reports whether there were counts in the last hours.
	Counted bool
	// Pending has the last count of what is pending, Sum the counts of the last hour.
	Pending, Sum            view.Counts
	OldestDue, Rate, Errors string
	Counts, Waits, Spark    chart
	Limits                  []view.LimitInUse
	Rates                   []view.RateStatus
	Recent                  []inspect.RecentError
}

func (d *dashboard) readNumbers(r *http.Request, scope eventqueue.Scope) (data handlerNumbers, err error) {
	minutes, err := d.Reader.MinutesOf(r.Context(), handlerFor, scope)
	if err != nil {
		return data, err
	}
	data = numbersOf(minutes)
	if data.Recent, err = d.Reader.RecentErrors(r.Context(), scope, errorsShown); err != nil {
		return data, err
	}
	limits, err := d.Reader.LimitsOfHandler(r.Context(), scope)
	if err != nil {
		return data, err
	}
	data.Limits = view.All(limits, view.LimitInUseOf)
	rates, err := d.rates(r, &scope.Canvas)
	data.Rates = slices.DeleteFunc(rates, func(l view.RateStatus) bool { return !l.Scope().WholeCanvas() && l.Scope() != scope })
	return data, err
}

// numbersOf sums up the last hour of the minutes of a handler.
func numbersOf(minutes []inspect.Minute) handlerNumbers {
	data := handlerNumbers{Counted: len(minutes) > 0, Rate: "–", Errors: "–"}
	if !data.Counted {
		return data
	}
	now := minutes[len(minutes)-1].AsOf
	first, _ := slices.BinarySearchFunc(minutes, now.Add(-shownFor), func(m inspect.Minute, t time.Time) int { return m.Begins.Compare(t) })
	hour := minutes[first:]
	data.Spark = wideSparkline(minutes, now)
	data.Counts, data.Waits, _ = charts(hour, now)
	if sums := inspect.SumMinutes(hour); len(sums) > 0 {
		sum := &sums[0]
		data.Rate, data.Errors = rateOf(sum, shownFor), errorsOf(sum)
		data.Sum = view.CountsOf(*sum)
	}
	all := &inspect.SumMinutes(minutes)[0]
	data.Pending, data.OldestDue = view.CountsOf(*all), oldestDue(all)
	return data
}

// wideSparkline has the runs of a handler during the last hours, in steps of some minutes. It ends with the last minute
// that is over: one that is not would look like fewer runs.
func wideSparkline(minutes []inspect.Minute, now time.Time) chart {
	const step = 5 * time.Minute
	steps := make([]float64, handlerFor/step)
	high := 1.0
	over := now.Truncate(time.Minute)
	for i := range minutes {
		m := &minutes[i]
		at := len(steps) - 1 - int((over.Sub(m.Begins)-time.Minute)/step)
		if m.Begins.Before(over) && at >= 0 {
			steps[at] += float64(m.Completed + m.Failed + m.Retried)
			high = max(high, steps[at])
		}
	}
	c := chart{Width: 640, Height: 40, Text: "Runs in the last 6 hours; the most in five minutes are " + count(int64(high))}
	c.Lines = []curve{{Name: "runs", Class: "s1", Points: linePoints(steps, func(v float64) float64 { return 38 - 36*v/high }, 1, 638)}}
	return c
}
