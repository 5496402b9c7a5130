package yamlfile

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxMistakes is how many mistakes of a file are reported: a file of 1 MiB can have half a million, too many to read.
	maxMistakes = 100
	// maxMistakeBytes is about how long the text of one may be: it can quote the file.
	maxMistakeBytes = 500
)

// Mistakes collects the mistakes in a file: the first hundred, and the number of the others.
type Mistakes struct {
	// Prefix is before each of them, such as the path of the file.
	Prefix string

	first []error
	more  int
}

// Report is a Report.
func (m *Mistakes) Report(line int, format string, args ...any) {
	if len(m.first) == maxMistakes {
		m.more++
		return
	}
	m.first = append(m.first, fmt.Errorf("%sline %d: %s", m.Prefix, line, Shorten(fmt.Sprintf(format, args...), maxMistakeBytes)))
}

// Err joins the mistakes; it is nil when there are none.
func (m *Mistakes) Err() error {
	all := m.first
	if m.more > 0 {
		all = append(all, fmt.Errorf("%sand %d mistakes more: correct these first", m.Prefix, m.more))
	}
	return errors.Join(all...)
}

// Shorten leaves out the middle of a text that is longer than about a number of bytes. The beginning of a mistake has its place,
// and the end the advice.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	half := most / 2
	return strings.ToValidUTF8(s[:half], "") + " … " + strings.ToValidUTF8(s[len(s)-half:], "")
}
