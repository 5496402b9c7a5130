package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Page is a page with figures.
type Page struct {
	File    string
	Chart   string // a file as well; empty: it has none
	Command string // that writes them
	Peer    string // the heading of what ours is compared with
}

// The pages.
var (
	Benchmarks = Page{"benchmarks.md", "benchmarks.svg", "make bench", "River"}
	Growth     = Page{"growth.md", "", "make bench-growth", "against"}
)

// The program writes the text between the two markers; the rest of the page is written by
// hand.
const (
	begin = "<!-- figures: begin -->"
	end   = "<!-- figures: end -->"
)

// Run is a complete run of the benchmark.
type Run struct {
	Figures *Figures
	Results []Result
	Facts   []Fact // about where and how it was measured
}

// Fact is a row of the table about the machine and the settings.
type Fact struct{ Name, Value string }

// CheckPage returns an error if Write would not find a page with its markers in dir, so that
// this is known before the measurements.
func CheckPage(dir string, page Page) error {
	_, _, err := readPage(dir, page)
	return err
}

// Write writes a run into dir: its tables between the markers of the page, whose
// other text stays as it is, and its chart. Each of the two is replaced in one
// step; the page, which refers to the chart, comes last.
func Write(dir string, page Page, run Run) error {
	before, after, err := readPage(dir, page)
	if err != nil {
		return err
	}
	if page.Chart != "" {
		if err := replace(filepath.Join(dir, page.Chart), chart(run.Results)); err != nil {
			return err
		}
	}
	return replace(filepath.Join(dir, page.File), before+"\n"+tables(page, run)+after)
}

// readPage returns the page up to the end of the first marker and from the
// beginning of the second one.
func readPage(dir string, of Page) (before, after string, err error) {
	path := filepath.Join(dir, of.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("%w; -write takes the directory of %s, and writes into a page that is there", err, of.File)
	}
	page := string(text)
	for _, marker := range []string{begin, end} {
		if n := strings.Count(page, marker); n != 1 {
			return "", "", fmt.Errorf("%s has the marker %s %d times; the figures go between one %s and one %s, each on a line of its own", path, marker, n, begin, end)
		}
	}
	from, to := strings.Index(page, begin)+len(begin), strings.Index(page, end)
	if to < from {
		return "", "", fmt.Errorf("%s has %s before %s; put them in the other order", path, end, begin)
	}
	return page[:from], page[to:], nil
}

// tables returns the text between the markers.
func tables(page Page, run Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nWritten by `%s`; changes by hand are lost.\n", page.Command)
	if page.Chart != "" {
		fmt.Fprintf(&b, "\n![Each measure beside its goal](%s)\n", page.Chart)
	}

	b.WriteString("\n### Machine and settings\n\n")
	row(&b, "", "")
	row(&b, "---", "---")
	for _, f := range slices.Concat(run.Facts, run.Figures.otherLoad()) {
		row(&b, cell(f.Name), cell(f.Value))
	}

	b.WriteString("\n### Measures\n\n")
	b.WriteString("Ours and what it is compared with are medians of the rounds. The ratio is the median of the ratios of each round, so it is not quite the one of\n" +
		"the two medians.\n\n")
	row(&b, "measure", "what", "ours", page.Peer, "ratio", "goal", "")
	row(&b, "---", "---", "--:", "--:", "--:", "--:", "---")
	for _, r := range run.Results {
		row(&b, run.Figures.measureCells(r)...)
	}

	b.WriteString("\n### All figures\n\n")
	row(&b, "figure", "median", "least", "most", "unit", "rounds")
	row(&b, "---", "--:", "--:", "--:", "---", "--:")
	for _, name := range run.Figures.order {
		row(&b, run.Figures.figureCells(name)...)
	}
	b.WriteString("\n")
	return b.String()
}

func (f *Figures) otherLoad() []Fact {
	middle, ok := median(f.others)
	if !ok {
		return []Fact{{"other load", "unknown"}}
	}
	return []Fact{{"other load", fmt.Sprintf("%.2f cores in the median run, %.2f at most", middle, slices.Max(f.others))}}
}

func (f *Figures) measureCells(r Result) []string {
	ours, river, ratio := f.quantity(r.Of), "", ""
	if r.By != "" {
		river, ratio = f.quantity(r.By), grouped(Number(r.Value))
		if !slices.Contains(strings.Split(r.By, "."), "river") {
			river = "(ours, `" + r.By + "`) " + river
		}
	}
	verdict := "**short**"
	if r.OK() {
		verdict = "ok"
	}
	return []string{"`" + r.Name + "`", cell(r.Text), ours, river, ratio, cell(r.goalText()), verdict}
}

func (f *Figures) figureCells(name string) []string {
	values := f.values[name]
	middle, _ := f.median(name) // it has one
	cells := []string{"`" + name + "`"}
	for _, v := range []float64{middle, slices.Min(values), slices.Max(values)} {
		cells = append(cells, grouped(Number(v)))
	}
	return append(cells, cell(unitText(f.units[name])), strconv.Itoa(len(values)))
}

// quantity is the median of a figure with its unit, for a cell.
func (f *Figures) quantity(name string) string {
	value, ok := f.median(name)
	if !ok {
		return ""
	}
	return cell(withUnit(grouped(Number(value)), unitText(f.units[name])))
}

// goalText is the goal with its unit.
func (r Result) goalText() string {
	sign := "≥ "
	if r.Goal.most {
		sign = "≤ "
	}
	return withUnit(sign+grouped(strconv.FormatFloat(r.Goal.bound, 'f', -1, 64)), r.Unit)
}

func withUnit(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// unitText spells out "/event".
func unitText(unit string) string {
	if of, ok := strings.CutPrefix(unit, "/"); ok {
		return "per " + of
	}
	return unit
}

// grouped puts commas between the thousands of a number.
func grouped(number string) string {
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "-", number[1:]
	}
	whole, fraction, found := strings.Cut(number, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}

func row(b *strings.Builder, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// cell escapes a text so that it stays within its cell.
var cell = strings.NewReplacer("\n", " ", "|", `\|`, "<", "&lt;").Replace

// replace writes a file in one step: a reader sees either all of the old file or all of the
// new one.
func replace(path, text string) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}
