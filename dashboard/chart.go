package dashboard

import (
	"fmt"
	"math"
	"strings"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// chart is lines over a time that ends with the last minute that is over.
type chart struct {
	Title         string
	Width, Height int
	Lines         []curve
	Ticks         []tick
	// Right and Base are where the grid ends, and the line of the words below it.
	Right, Base int
	Text        string
	// Gap explains interruptions of the lines; empty if there are none.
	Gap string
}

// curve is a line; Path has gaps where its values are not known.
type curve struct{ Name, Class, Points, Path string }

// tick is a line of the grid, and the value above its left end: there it has room at every width.
type tick struct {
	Y, TextY float64
	Text     string
}

// The inner edges of a chart. The text of a narrow screen is 20 high.
const (
	chartWidth, chartHeight = 640, 200
	left, right, top, floor = 2, 2, 28, 28
)

type series struct {
	name, class string
	// of is the value of a minute that has counts, if it is known.
	of func(m inspect.Minute) (value float64, known bool)
	// gap explains minutes without counts; empty if they count as 0.
	gap string
	// stays reports whether a value of 0 holds in the minutes without counts that follow.
	stays bool
}

// charts draws the minutes until now. Programs hand in what they have counted before a minute is over, so that in a
// minute without a row nothing was emitted and nothing has ended. How long events waited is only known where some
// ran, and how many are pending where that was counted; 0 until something is counted again.
func charts(minutes []inspect.Minute, now time.Time) (counts, waits, backlog chart) {
	number := func(v float64) string { return count(int64(v)) }
	sum := func(of func(m inspect.Minute) int64) func(inspect.Minute) (float64, bool) {
		return func(m inspect.Minute) (float64, bool) { return float64(of(m)), true }
	}
	counts = draw("Events per minute", minutes, now, number,
		series{name: "emitted", class: "s1", of: sum(func(m inspect.Minute) int64 { return m.Emitted })},
		series{name: "completed", class: "s2", of: sum(func(m inspect.Minute) int64 { return m.Completed })},
		series{name: "retried", class: "s3", of: sum(func(m inspect.Minute) int64 { return m.Retried })},
		series{name: "failed", class: "s4", of: sum(func(m inspect.Minute) int64 { return m.Failed })})
	at := func(q float64) func(m inspect.Minute) (float64, bool) {
		return func(m inspect.Minute) (float64, bool) {
			if m.Wait.Count() == 0 {
				return 0, false
			}
			return m.Wait.Quantile(q).Seconds(), true
		}
	}
	waits = draw("From due to start", minutes, now, func(v float64) string { return view.Seconds(v).String() },
		series{name: "median", class: "s1", of: at(0.5), gap: "nothing ran"}, series{name: "99 %", class: "s3", of: at(0.99), gap: "nothing ran"})
	backlog = draw("Pending", minutes, now, number, series{name: "pending", class: "s1", gap: "not counted", stays: true, of: func(m inspect.Minute) (float64, bool) {
		if m.Pending == nil {
			return 0, false
		}
		return float64(*m.Pending), true
	}})
	return counts, waits, backlog
}

func draw(title string, minutes []inspect.Minute, now time.Time, unit func(float64) string, list ...series) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight, Right: chartWidth - right, Base: chartHeight - 8}
	high := 0.0
	for _, m := range minutes {
		for _, s := range list {
			if value, known := s.of(m); known {
				high = max(high, value)
			}
		}
	}
	roof := nice(high)
	y := func(v float64) float64 { return chartHeight - floor - (chartHeight-top-floor)*v/roof }
	for _, part := range []float64{0, 0.5, 1} {
		c.Ticks = append(c.Ticks, tick{y(roof * part), y(roof*part) - 5, unit(roof * part)})
	}
	for _, s := range list {
		drawn, whole := path(minutes, now, s, y)
		if !whole {
			c.Gap = s.gap
		}
		c.Lines = append(c.Lines, curve{Name: s.name, Class: s.class, Path: drawn})
	}
	c.Text = fmt.Sprintf("%s in the last hour; the highest value is %s", title, unit(high))
	return c
}

// path has one point for each minute that lies within the hour as a whole and whose value is known. One between two
// gaps is a dot.
func path(minutes []inspect.Minute, now time.Time, s series, y func(float64) float64) (drawn string, whole bool) {
	first, n := wholeMinutes(now, shownFor)
	known := make([]bool, n+1)
	values := make([]float64, n+1)
	counted := make([]bool, n+1)
	for _, m := range minutes {
		if i := int(m.Begins.Sub(first) / time.Minute); i >= 0 && i <= n {
			values[i], known[i] = s.of(m)
			counted[i] = true
		}
	}
	for i := range known {
		if !counted[i] {
			known[i] = s.gap == "" || s.stays && i > 0 && known[i-1] && values[i-1] == 0
		}
	}
	whole = true
	var b strings.Builder
	for i, v := range values {
		x := left + float64(chartWidth-left-right)*float64(i)/float64(n)
		switch {
		case !known[i]:
			whole = false
		case i == 0 || !known[i-1]:
			_, _ = fmt.Fprintf(&b, "M%.1f,%.1fh0", x, y(v))
		default:
			_, _ = fmt.Fprintf(&b, "L%.1f,%.1f", x, y(v))
		}
	}
	return b.String(), whole
}

// wholeMinutes returns the first of the minutes that lie within a time as a whole, and how many come after it.
func wholeMinutes(now time.Time, length time.Duration) (first time.Time, n int) {
	return now.Truncate(time.Minute).Add(time.Minute - length), int(length/time.Minute) - 2
}

// points has one point for each minute that lies within the time as a whole; minutes without counts
// are 0.
func points(minutes []inspect.Minute, now time.Time, length time.Duration, of func(inspect.Minute) float64, y func(float64) float64, x0, width float64) string {
	first, n := wholeMinutes(now, length)
	values := make([]float64, n+1)
	for _, m := range minutes {
		if i := int(m.Begins.Sub(first) / time.Minute); i >= 0 && i <= n {
			values[i] += of(m)
		}
	}
	return linePoints(values, y, x0, width)
}

// linePoints has one point for each value, from left to right.
func linePoints(values []float64, y func(float64) float64, x0, width float64) string {
	var b strings.Builder
	for i, v := range values {
		_, _ = fmt.Fprintf(&b, "%.1f,%.1f ", x0+width*float64(i)/float64(len(values)-1), y(v))
	}
	return strings.TrimSpace(b.String())
}

// nice is the next round number.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5, 10} {
		if v <= step*unit {
			return step * unit
		}
	}
	return 10 * unit
}

// sparkline has the runs of one handler.
func sparkline(minutes []inspect.Minute, now time.Time) chart {
	runs := func(m inspect.Minute) float64 { return float64(m.Completed + m.Failed + m.Retried) }
	high := 1.0
	for _, m := range minutes {
		high = max(high, runs(m))
	}
	y := func(v float64) float64 { return 22 - 20*v/high }
	return chart{Width: 96, Height: 24, Lines: []curve{{Name: "runs", Class: "s1", Points: points(minutes, now, handlersFor, runs, y, 1, 94)}}}
}
