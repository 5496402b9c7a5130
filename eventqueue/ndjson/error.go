package ndjson

import (
	"fmt"
	"strings"
)

// Error describes the mistake in one line. Its text begins with file:line, so
// that editors can jump to it.
type Error struct {
	// Name is the name of the text, as it was given to Read.
	Name string
	// Line is counted from 1; blank lines count.
	Line int
	// Field is the key with the mistake, or empty when the line as a whole is
	// wrong.
	Field string
	// Problem names the mistake and the correction.
	Problem string
}

// Error returns the file, the line, the field and the problem.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d: ", e.Name, e.Line)
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}
