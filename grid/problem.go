package grid

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"eventsv2/internal/yamlfile"
)

// Problem is one mistake in a definition.
type Problem struct {
	// File is the name that was given to Load or Parse.
	File string
	// Line is counted from 1.
	Line int
	// Path is the place in the definition, such as actions.report.inputs.vars. It is
	// empty for the file as a whole.
	Path string
	// Text says what is wrong and what would be right.
	Text string
}

// Error returns file:line: path: text, a form from which editors can open the line.
func (p *Problem) Error() string {
	if p.Path == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Path, p.Text)
}

// Aliases can repeat a mistake, and the text that it quotes, very often.
const (
	// maxProblems is how many mistakes are reported: more are too many to read.
	maxProblems = 100
	// maxProblemBytes is about how long the path and the text of one may be.
	maxProblemBytes = 1000
)

// problems are the mistakes of one definition.
type problems struct {
	file  string
	found []*Problem
}

// full reports whether the limit of mistakes is reached, so that reading can stop.
func (p *problems) full() bool { return len(p.found) >= maxProblems }

// at reports mistakes at a path.
func (p *problems) at(path string) yamlfile.Report {
	return func(line int, format string, args ...any) {
		if p.full() {
			return
		}
		text := yamlfile.Shorten(fmt.Sprintf(format, args...), maxProblemBytes)
		p.found = append(p.found, &Problem{File: p.file, Line: max(line, 1), Path: yamlfile.Shorten(path, maxProblemBytes), Text: text})
	}
}

// err returns nil if there are no mistakes.
func (p *problems) err() error {
	slices.SortStableFunc(p.found, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	joined := make([]error, len(p.found))
	for i, problem := range p.found {
		joined[i] = problem
	}
	return errors.Join(joined...)
}
