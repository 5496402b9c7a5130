package httptarget

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"eventsv2/internal/yamlfile"
)

// Problem is one mistake in a handlers file. Load and Parse return the first hundred
// problems joined into one error, in the order of their lines, with the number of the
// others.
type Problem struct {
	// File is the name that was given to Load or Parse.
	File string
	// Line is counted from 1.
	Line int
	// Text names the mistake and the correction.
	Text string
}

// Error is file:line: text, a form from which editors can open the line.
func (p *Problem) Error() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

const (
	// maxProblems is how many mistakes are reported: a file of 1 MiB can have half a
	// million, too many to read.
	maxProblems = 100
	// maxProblemBytes is about how long the text of one may be: it can quote the file.
	maxProblemBytes = 1000
)

// problems collects the mistakes in one file.
type problems struct {
	file string
	list []*Problem // the first ones by line, and perhaps a few later ones
	more int
}

func (ps *problems) add(line int, format string, args ...any) {
	if ps.more > 0 && line >= ps.list[maxProblems-1].Line {
		ps.more++ // cut would drop it; as most are dropped, no text is made for them
		return
	}
	ps.list = append(ps.list, &Problem{File: ps.file, Line: max(line, 1), Text: yamlfile.Shorten(fmt.Sprintf(format, args...), maxProblemBytes)})
	if len(ps.list) >= 10*maxProblems {
		ps.cut()
	}
}

// cut drops all but the first ones by line.
func (ps *problems) cut() {
	slices.SortStableFunc(ps.list, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	if beyond := len(ps.list) - maxProblems; beyond > 0 {
		ps.more += beyond
		ps.list = slices.Delete(ps.list, maxProblems, len(ps.list))
	}
}

func (ps *problems) none() bool { return len(ps.list) == 0 }

// err is nil when there are none.
func (ps *problems) err() error {
	ps.cut()
	joined := make([]error, len(ps.list))
	for i, p := range ps.list {
		joined[i] = p
	}
	if ps.more > 0 {
		joined = append(joined, fmt.Errorf("%s: and %d mistakes more: correct these first", ps.file, ps.more))
	}
	return errors.Join(joined...)
}
