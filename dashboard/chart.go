package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"eventsv2/eventqueue/inspect"
	"eventsv2/internal/view"
)

// chart is lines over a time that ends with the last step that is over.
type chart struct {
	Title         string
	Width, Height int
	Lines         []curve
	Ticks         []tick
	Times         []moment
	// Begins is the time of the first point, in seconds since 1970. Step is the time from one point to the next, and Every that
	// from one tick of the time axis to the next, in seconds.
	Begins, Step, Every int64
	// Right is where the grid ends, and Floor its line of 0.
	Right, Floor int
	Text         string
	// Gap explains interruptions of the lines; empty if there are none.
	Gap string
}

// curve is a line; Path has gaps where its values are not known, and Dots those points that lie between two gaps.
type curve struct {
	Name, Class, Points, Path, Dots string
	// Values has the value of each point as it is shown, or nothing, with a | between them.
	Values string
}

// tick is a line of the grid, and the value above its left end: there it has room at every width.
type tick struct {
	Y, TextY float64
	Text     string
}

// The height of a chart, and its upper and lower edges. The text of a narrow screen is 20 high.
const chartHeight, top, floor = 200, 28, 28

type series struct {
	name, class string
	// of is the value of a step that has counts, if it is known.
	of func(m *inspect.Minute) (value float64, known bool)
	// gap explains steps without counts; empty if they count as 0.
	gap string
	// stays reports whether a value of 0 holds in the steps without counts that follow.
	stays bool
}

// charts draws the minutes on an axis. Programs hand in what they have counted before a minute is over, so that in a
// minute without a row nothing was emitted and nothing has ended. How long events waited is only known where some
// ran, and how many are pending where that was counted; 0 until something is counted again.
func charts(minutes []inspect.Minute, on axis) (counts, waits, backlog chart) {
	steps := on.folded(minutes)
	number := func(v float64) string { return count(int64(v)) }
	sum := func(of func(m *inspect.Minute) int64) func(*inspect.Minute) (float64, bool) {
		return func(m *inspect.Minute) (float64, bool) { return float64(of(m)), true }
	}
	counts = draw("Events per "+on.stepWords, steps, on, number,
		series{name: "emitted", class: "s1", of: sum(func(m *inspect.Minute) int64 { return m.Emitted })},
		series{name: "completed", class: "s2", of: sum(func(m *inspect.Minute) int64 { return m.Completed })},
		series{name: "retried", class: "s3", of: sum(func(m *inspect.Minute) int64 { return m.Retried })},
		series{name: "failed", class: "s4", of: sum(func(m *inspect.Minute) int64 { return m.Failed })})
	at := func(q float64) func(m *inspect.Minute) (float64, bool) {
		return func(m *inspect.Minute) (float64, bool) {
			if m.Wait.Count() == 0 {
				return 0, false
			}
			return m.Wait.Quantile(q).Seconds(), true
		}
	}
	waits = draw("From due to start", steps, on, func(v float64) string { return view.Seconds(v).String() },
		series{name: "median", class: "s1", of: at(0.5), gap: "nothing ran"}, series{name: "99 %", class: "s3", of: at(0.99), gap: "nothing ran"})
	backlog = draw("Pending", steps, on, number, series{name: "pending", class: "s1", gap: "not counted", stays: true, of: func(m *inspect.Minute) (float64, bool) {
		if m.Pending == nil {
			return 0, false
		}
		return float64(*m.Pending), true
	}})
	return counts, waits, backlog
}

// points are the values of a series by step. Nothing is known from before counting began.
type points struct {
	values []float64
	known  []bool
	// gap explains why values are not known that could be; empty if there are none.
	gap string
}

func (s series) points(steps []*step, on axis) points {
	p := points{values: make([]float64, len(steps)), known: make([]bool, len(steps))}
	drained := false
	for i, m := range steps {
		switch {
		case on.at(i).Before(on.counted):
			continue
		case m == nil:
			p.known[i] = s.gap == "" || s.stays && drained
		case m.Unsummed:
			p.gap, drained = unsummed, false
			continue
		default:
			p.values[i], p.known[i] = s.of(&m.Minute)
			drained = m.drained
		}
		if !p.known[i] && p.gap == "" {
			p.gap = s.gap
		}
	}
	return p
}

// unsummed explains a gap of all lines.
const unsummed = "not summed up by cron"

func draw(title string, steps []*step, on axis, unit func(float64) string, list ...series) chart {
	c := chart{Title: title, Width: chartWidth, Height: chartHeight, Right: chartWidth - right, Floor: chartHeight - floor,
		Times: on.moments(), Begins: on.begins.Unix(), Step: int64(on.step / time.Second), Every: int64(on.every() / time.Second)}
	drawn, high := make([]points, len(list)), 0.0
	for i, s := range list {
		drawn[i] = s.points(steps, on)
		high = max(high, slices.Max(drawn[i].values))
	}
	roof := nice(high)
	if unit(roof/2) == unit(0) {
		roof *= 2
	}
	y := func(v float64) float64 { return chartHeight - floor - (chartHeight-top-floor)*v/roof }
	for _, part := range []float64{0, 0.5, 1} {
		c.Ticks = append(c.Ticks, tick{y(roof * part), y(roof*part) - 5, unit(roof * part)})
	}
	for i, s := range list {
		line := curve{Name: s.name, Class: s.class, Values: drawn[i].texts(unit)}
		line.Path, line.Dots = drawn[i].path(on, y)
		c.Lines = append(c.Lines, line)
		if drawn[i].gap != "" {
			c.Gap = drawn[i].gap
		}
	}
	c.Text = fmt.Sprintf("%s in the last %s; the highest value is %s", title, on.words, unit(high))
	return c
}

// path has one point for each value that is known. One between two gaps is a dot, which is drawn so that it can be seen.
func (p points) path(on axis, y func(float64) float64) (path, dots string) {
	var b, d strings.Builder
	for i, v := range p.values {
		x := on.x(on.at(i))
		before, after := i > 0 && p.known[i-1], i+1 < len(p.values) && p.known[i+1]
		switch {
		case !p.known[i]:
		case !before && !after:
			_, _ = fmt.Fprintf(&d, "M%.1f,%.1fh0", x, y(v))
		case !before:
			_, _ = fmt.Fprintf(&b, "M%.1f,%.1f", x, y(v))
		default:
			_, _ = fmt.Fprintf(&b, "L%.1f,%.1f", x, y(v))
		}
	}
	return b.String(), d.String()
}

// texts are the values as they are shown, with a | between them.
func (p points) texts(unit func(float64) string) string {
	list := make([]string, len(p.values))
	for i, v := range p.values {
		if p.known[i] {
			list[i] = unit(v)
		}
	}
	return strings.Join(list, "|")
}

// linePoints has one point for each value, from left to right.
func linePoints(values []float64, y func(float64) float64, x0, width float64) string {
	var b strings.Builder
	for i, v := range values {
		_, _ = fmt.Fprintf(&b, "%.1f,%.1f ", x0+width*float64(i)/float64(len(values)-1), y(v))
	}
	return strings.TrimSpace(b.String())
}

// nice is the next number that is round, and so is its half but for that of 1.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 4, 6, 8} {
		if v <= step*unit {
			return step * unit
		}
	}
	return 10 * unit
}

// sparkline has the runs of one handler, with one point for each minute that lies within the time as a whole.
func sparkline(minutes []inspect.Minute, now time.Time) chart {
	const n = int(handlersFor/time.Minute) - 1
	first := now.Truncate(time.Minute).Add(time.Minute - handlersFor)
	var runs [n]float64
	high := 1.0
	for i := range minutes {
		m := &minutes[i]
		if at := int(m.Begins.Sub(first) / time.Minute); !m.Begins.Before(first) && at < n {
			runs[at] += float64(m.Completed + m.Failed + m.Retried)
			high = max(high, runs[at])
		}
	}
	y := func(v float64) float64 { return 22 - 20*v/high }
	return chart{Width: 96, Height: 24, Lines: []curve{{Name: "runs", Class: "s1", Points: linePoints(runs[:], y, 1, 94)}}}
}
