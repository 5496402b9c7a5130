package dashboard

import (
	"math"
	"time"

	"eventsv2/eventqueue/inspect"
)

// axis is the time of a chart: some steps, all of which are over.
type axis struct {
	span
	begins time.Time
	steps  int
	// counted is when counting began: before it nothing is known.
	counted time.Time
}

// axis is the time of the span until now. Where counting began within it, it begins there; the zero time is not known.
func (s span) axis(now, counted time.Time) axis {
	ends := now.Truncate(s.step)
	a := axis{span: s, begins: ends.Add(-s.length), counted: counted.Truncate(s.step)}
	if a.counted.After(a.begins) {
		a.begins = a.counted
		if latest := ends.Add(-s.least); a.begins.After(latest) {
			a.begins = latest
		}
	}
	a.steps = int(ends.Sub(a.begins) / s.step)
	return a
}

// at is when a step begins.
func (a axis) at(step int) time.Time { return a.begins.Add(time.Duration(step) * a.step) }

// x is where a time lies in a drawing: each step has its point where it begins.
func (a axis) x(t time.Time) float64 {
	return left + float64(chartWidth-left-right)*float64(t.Sub(a.begins))/float64(time.Duration(a.steps-1)*a.step)
}

// step has the sums of the minutes of a step, and the highest number of what was pending.
type step struct {
	inspect.Minute
	drained bool // nothing was pending when it was counted last
}

// folded are the sums of each step, of minutes by time; nil: there are none.
func (a axis) folded(minutes []inspect.Minute) []*step {
	sums := make([]*step, a.steps)
	for i := range minutes {
		m := &minutes[i]
		at := int(m.Begins.Sub(a.begins) / a.step)
		if m.Begins.Before(a.begins) || at >= a.steps {
			continue
		}
		sum := sums[at]
		if sum == nil {
			sum = &step{}
			sums[at] = sum
		}
		sum.drained = m.Pending != nil && *m.Pending == 0
		sum.Merge(&m.Counts)
		sum.Unsummed = sum.Unsummed || m.Unsummed
		if m.Pending != nil && (sum.Pending == nil || *m.Pending > *sum.Pending) {
			sum.Pending = m.Pending
		}
	}
	return sums
}

// everies are the times between two ticks of an axis to choose from.
var everies = []time.Duration{time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour}

// every is the time between two ticks: the shortest of which no more than seven fit.
func (a axis) every() time.Duration {
	const most = 7
	whole := time.Duration(a.steps) * a.step
	for _, every := range everies {
		if whole <= most*every {
			return every
		}
	}
	return everies[len(everies)-1]
}

// moment is a tick of the time axis. Its text is anchored there by its middle or, near to an edge of the drawing, by an end.
type moment struct {
	X            float64
	At           int64 // in seconds since 1970
	Text, Anchor string
}

// chartWidth is the width of a chart, and left and right its inner edges.
const chartWidth, left, right = 640, 2, 2

// edge is how near to an edge of a drawing no text fits that has its middle there.
const edge = 36

// moments are the ticks at round times of UTC.
func (a axis) moments() (list []moment) {
	every := a.every()
	for t := a.begins.Truncate(every); !t.After(a.at(a.steps - 1)); t = t.Add(every) {
		if t.Before(a.begins) {
			continue
		}
		m := moment{X: math.Round(10*a.x(t)) / 10, At: t.Unix(), Text: tickText(t.UTC()), Anchor: "middle"}
		switch {
		case m.X < edge:
			m.Anchor = "start"
		case m.X > chartWidth-edge:
			m.Anchor = "end"
		}
		list = append(list, m)
	}
	return list
}

// tickText is the text of a tick: the beginning of a day has its name.
func tickText(t time.Time) string {
	if t.Hour() == 0 && t.Minute() == 0 {
		return t.Format("Mon 2")
	}
	return t.Format("15:04")
}
