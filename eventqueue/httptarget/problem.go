package httptarget

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Problem is one mistake in a handlers file. Load and Parse return all of them
// joined into one error, in the order of their lines.
type Problem struct {
	// File is the name that was given to Load or Parse.
	File string
	// Line is counted from 1.
	Line int
	// Text says what is wrong and what would be right.
	Text string
}

// Error is file:line: text, which editors can follow.
func (p *Problem) Error() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// problems collects the mistakes in one file.
type problems struct {
	file string
	list []*Problem
}

func (ps *problems) add(line int, format string, args ...any) {
	ps.list = append(ps.list, &Problem{File: ps.file, Line: max(line, 1), Text: fmt.Sprintf(format, args...)})
}

// err is nil when there are none.
func (ps *problems) err() error {
	slices.SortStableFunc(ps.list, func(a, b *Problem) int { return cmp.Compare(a.Line, b.Line) })
	joined := make([]error, len(ps.list))
	for i, p := range ps.list {
		joined[i] = p
	}
	return errors.Join(joined...)
}
