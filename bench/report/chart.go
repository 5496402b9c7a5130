package report

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// The chart, in pixels: names, bars, values and goals stand in columns.
const (
	chartWidth = 880
	namesEnd   = 186
	barsBegin  = 198
	barsEnd    = 638
	valuesEnd  = 712
	goalsEnd   = 806
	verdictEnd = 864

	rowsBegin = 84
	rowHeight = 24
	barHeight = 14
	belowRows = 16
)

// scoreEnd is the score at the end of the bars. Bars for better scores are cut off there
// and marked.
const scoreEnd = 2

// chart draws each result in relation to its goal, as an SVG with a background of its own,
// so that it can be read on light and dark pages. The same results give the same bytes.
func chart(results []Result) string {
	var s svg
	height := rowsBegin + rowHeight*len(results) + belowRows
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" font-family="system-ui, 'DejaVu Sans', Arial, sans-serif" font-size="12">`+"\n", chartWidth, height)
	s.printf("<title>Each measure beside its goal</title>\n")
	s.printf(`<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", chartWidth, height)
	s.text(16, 24, "start", `font-size="15" font-weight="bold"`, "Each measure beside its goal")
	s.text(16, 44, "start", `fill="#59636e"`, "Right of the line is better, whether a measure should be large or small; bars end at twice as good.")
	bottom := height - belowRows
	s.grid(bottom)
	for i, r := range results {
		s.row(rowsBegin+rowHeight*i, r)
	}
	s.line(1, bottom, "goal", `stroke="#1f2328" stroke-width="2"`)
	s.printf("</svg>\n")
	return s.String()
}

// svg is an image that is being written.
type svg struct{ strings.Builder }

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(&s.Builder, format, args...) }

// text writes a text that begins or ends at x, on the line y.
func (s *svg) text(x, y int, anchor, attributes, text string) {
	s.printf(`<text x="%d" y="%d" text-anchor="%s" %s>%s</text>`+"\n", x, y, anchor, attributes, escaped(text))
}

func escaped(text string) string {
	var b strings.Builder
	// It also replaces what XML cannot hold. A Builder takes everything.
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// aboveRows is where the lines begin.
const aboveRows = rowsBegin - 8

// grid draws what stands behind the bars, down to bottom, and the heads of the
// columns.
func (s *svg) grid(bottom int) {
	for score := 0.0; score <= scoreEnd; score += 0.5 {
		if score != 1 { // the goal, which is drawn over the bars
			s.line(score, bottom, strconv.FormatFloat(score, 'f', -1, 64), `stroke="#d1d9e0"`)
		}
	}
	s.text(valuesEnd, aboveRows-6, "end", `fill="#59636e"`, "measured")
	s.text(goalsEnd, aboveRows-6, "end", `fill="#59636e"`, "goal")
}

// line draws the line of a score, down to bottom, with a label above it.
func (s *svg) line(score float64, bottom int, label, attributes string) {
	x := barsBegin + length(score)
	s.printf(`<line x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d" %[4]s/>`+"\n", x, aboveRows, bottom, attributes)
	s.text(x, aboveRows-6, "middle", `fill="#59636e"`, label)
}

// row draws one result below y.
func (s *svg) row(y int, r Result) {
	score := r.Goal.score(r.Value)
	fill, verdict, weight := "#2f6fb3", "ok", "normal"
	if !r.OK() {
		fill, verdict, weight = "#c2570c", "short", "bold"
	}
	line := y + barHeight - 3
	s.text(namesEnd, line, "end", `fill="#1f2328"`, r.Name)
	s.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", barsBegin, y, length(score), barHeight, fill)
	if score > scoreEnd {
		s.text(barsEnd-4, line, "end", `fill="#ffffff" font-weight="bold"`, "»")
	}
	s.text(valuesEnd, line, "end", fmt.Sprintf(`fill="#1f2328" font-weight="%s"`, weight), grouped(Number(r.Value)))
	s.text(goalsEnd, line, "end", `fill="#59636e"`, r.goalText())
	s.text(verdictEnd, line, "end", fmt.Sprintf(`fill="%s" font-weight="%s"`, fill, weight), verdict)
}

// length is that of a bar.
func length(score float64) int {
	return int(math.Round(min(score, scoreEnd) / scoreEnd * (barsEnd - barsBegin)))
}

// score returns how a value compares with the goal: 1 is the goal, and more than 1 is
// better. It is never negative.
func (g Goal) score(value float64) float64 {
	switch {
	case value == g.bound: // also where both are 0
		return 1
	case g.most && value <= 0:
		return math.Inf(1)
	case g.most:
		return positive(g.bound / value)
	default:
		return positive(value / g.bound)
	}
}

// positive returns 0 for negative scores and for NaN.
func positive(score float64) float64 {
	if score > 0 {
		return score
	}
	return 0
}
