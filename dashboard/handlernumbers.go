package dashboard

import (
	"net/http"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// errorsShown is how many of the errors of a handler its page shows.
const errorsShown = 8

// handlerNumbers holds the runs, limits and errors on the page of a handler.
type handlerNumbers struct {
	// Counted reports whether there were counts in the last hour, and Charted whether there were in the time of the charts,
	// which Span is called.
	Counted, Charted bool
	Span             string
	Spans            []spanLink
	// Pending has the last count of what is pending, Sum the counts of the last hour.
	Pending, Sum            view.Counts
	OldestDue, Rate, Errors string
	Counts, Waits, Backlog  chart
	byHour                  bool // the charts
	Limits                  []view.LimitInUse
	Rates                   []view.RateStatus
	Recent                  []inspect.RecentError
}

// readNumbers reads the numbers of a handler, and retains what its states follow from.
func (d *dashboard) readNumbers(r *http.Request, scope eventqueue.Scope, facts *inspect.HandlerFacts) (data handlerNumbers, err error) {
	charted, err := spanOf(r)
	if err != nil {
		return data, err
	}
	pulse, err := d.Reader.Pulse(r.Context())
	if err != nil {
		return data, err
	}
	var hours inspect.HourSums
	since := charted.read()
	if charted.byHour() {
		if hours, err = d.Reader.HoursOf(r.Context(), since, scope); err != nil {
			return data, err
		}
		since = afterHours(hours)
	}
	minutes, err := d.Reader.MinutesOf(r.Context(), since, scope)
	if err != nil {
		return data, err
	}
	data = numbersOf(followed(hours.Of[scope.Canvas], minutes, hours.Until), minutes, charted, pulse.CountedSince)
	data.Spans = charted.links(d.Prefix + handlerPath(scope) + "&")
	if facts.Minutes = minutes; since < inspect.ActivityFor {
		if facts.Minutes, err = d.Reader.MinutesOf(r.Context(), inspect.ActivityFor, scope); err != nil {
			return data, err
		}
	}
	if data.Recent, err = d.Reader.RecentErrors(r.Context(), scope, errorsShown); err != nil {
		return data, err
	}
	err = d.readFacts(r, facts, scope)
	data.Limits, data.Rates = view.All(facts.Limits, view.LimitInUseOf), ratesOf(facts.Rates)
	return data, err
}

// numbersOf sums up the last hour of the minutes of a handler, and draws its counts in a span.
func numbersOf(counts, minutes []inspect.Minute, charted span, counted time.Time) handlerNumbers {
	data := handlerNumbers{Charted: len(counts) > 0, Span: charted.words, byHour: charted.byHour(), Rate: "–", Errors: "–"}
	if !data.Charted {
		return data
	}
	now := counts[len(counts)-1].AsOf
	hour := lastHour(minutes, now)
	data.Counts, data.Waits, data.Backlog = charts(counts, charted.axis(now, counted))
	if sums := inspect.SumMinutes(hour); len(sums) > 0 {
		sum := &sums[0]
		data.Counted = true
		data.Rate, data.Errors = rateOf(sum, shownFor), errorsOf(sum)
		data.Sum = view.CountsOf(*sum)
	}
	if sums := inspect.SumMinutes(minutes); len(sums) > 0 {
		data.Pending, data.OldestDue = view.CountsOf(sums[0]), oldestDue(&sums[0])
	}
	return data
}
