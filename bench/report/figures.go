// Package report presents the figures of a run: one line for each measure, a page with
// tables, and a chart.
package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figures are the measured values by name, one for each round.
type Figures struct {
	values map[string][]float64
	units  map[string]string
	order  []string
	others []float64 // cores that were busy with something else, one for each run
}

// NewFigures makes empty Figures.
func NewFigures() *Figures {
	return &Figures{values: map[string][]float64{}, units: map[string]string{}}
}

// Add adds the value of one round.
func (f *Figures) Add(name, unit string, value float64) {
	if _, known := f.values[name]; !known {
		f.order = append(f.order, name)
	}
	f.values[name] = append(f.values[name], value)
	f.units[name] = unit
}

// Note records how many cores the benchmark, and everything else on the machine, kept busy
// during one run. If mine is 0 the numbers are unknown, and nothing is recorded.
func (f *Figures) Note(mine, others float64) {
	if mine > 0 {
		f.others = append(f.others, others)
	}
}

// median returns the median of the rounds, or false if there is no such figure.
func (f *Figures) median(name string) (float64, bool) {
	return median(f.values[name])
}

func median(values []float64) (float64, bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2, true
	}
	return sorted[middle], true
}

// Goal is a bound.
type Goal struct {
	bound float64
	most  bool
}

// AtLeast is a goal for a value that should be large.
func AtLeast(bound float64) Goal { return Goal{bound: bound} }

// AtMost is a goal for a value that should be small.
func AtMost(bound float64) Goal { return Goal{bound: bound, most: true} }

func (g Goal) String() string {
	if g.most {
		return "<=" + strconv.FormatFloat(g.bound, 'f', -1, 64)
	}
	return ">=" + strconv.FormatFloat(g.bound, 'f', -1, 64)
}

func (g Goal) reached(value float64) bool {
	if g.most {
		return value <= g.bound
	}
	return value >= g.bound
}

// Measure is one figure, or the ratio of two of one round, and its goal.
type Measure struct {
	Name string
	Text string // what it is
	Of   string // the figure
	By   string // the one that it is divided by; empty: none
	Unit string // empty for a ratio
	Goal Goal
}

// Result is the result of a measure.
type Result struct {
	Measure
	Value float64
}

// OK reports whether the goal is reached.
func (r Result) OK() bool { return r.Goal.reached(r.Value) }

// String is the line of the result.
func (r Result) String() string {
	verdict := "short"
	if r.OK() {
		verdict = "ok"
	}
	return fmt.Sprintf("ratio %-22s %10s goal %-7s %s", r.Name, Number(r.Value), r.Goal, verdict)
}

// Results returns the results of the measures that have figures: the medians over the
// rounds.
func (f *Figures) Results(measures []Measure) (results []Result) {
	for _, m := range measures {
		values := slices.Clone(f.values[m.Of])
		if m.By != "" {
			values = quotients(values, f.values[m.By])
		}
		if value, ok := median(values); ok {
			results = append(results, Result{m, value})
		}
	}
	return results
}

func quotients(of, by []float64) (q []float64) {
	for i := range min(len(of), len(by)) {
		q = append(q, of[i]/by[i])
	}
	return q
}

// Number prints a value with about three significant digits.
func Number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 4, 64)
	}
}
