package growth

import (
	"fmt"
	"strings"
	"time"
)

// minDecided is the shortest load whose growth is decided: before, caches and
// connection pools are still filling.
const minDecided = 10 * time.Minute

// figure is a measure and what became of it.
type figure struct {
	measure measure
	trend   trend
}

// Report is what became of all measures.
type Report struct {
	// Missed is how often the database could not be measured.
	Missed  int
	load    time.Duration
	figures []figure
}

// decided reports whether the run was long enough for a verdict.
func (r *Report) decided() bool { return r.load >= minDecided }

// Growing lists what goes on growing.
func (r *Report) Growing() []string {
	if !r.decided() {
		return nil
	}
	var names []string
	for _, f := range r.figures {
		if f.trend.grows {
			names = append(names, f.measure.String())
		}
	}
	return names
}

// Verdict names what goes on growing.
func (r *Report) Verdict() string {
	switch names := r.Growing(); {
	case !r.decided():
		return "undecided"
	case len(names) > 0:
		return strings.Join(names, ",")
	default:
		return "none"
	}
}

// Table has a row for each measure, in Markdown.
func (r *Report) Table() string {
	var b strings.Builder
	b.WriteString("Medians of the quarters of the load; the first is the warm-up. Trend is Kendall's tau over the last three.\n\n" +
		"| measure | start | quarter 1 | quarter 2 | quarter 3 | quarter 4 | end | trend | verdict |\n|---|--:|--:|--:|--:|--:|--:|--:|---|\n")
	for _, f := range r.figures {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r.cells(f), " | "))
	}
	return b.String() + "\n"
}

// cells are a row of the table.
func (r *Report) cells(f figure) []string {
	u := f.measure.kind.unit
	row := []string{f.measure.String(), u.format(f.trend.start)}
	for _, m := range f.trend.medians {
		row = append(row, u.format(m))
	}
	verdict := "no growth"
	switch {
	case !r.decided() || !f.trend.decided:
		verdict = "undecided"
	case f.trend.grows:
		verdict = "GROWS"
	}
	return append(row, u.format(f.trend.end), fmt.Sprintf("%+.2f", f.trend.tau), verdict)
}
