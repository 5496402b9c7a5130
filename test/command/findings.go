package command

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// Bounds of one finding.
const (
	findingLines = 30
	lineLength   = 1000 // bytes
)

// Findings are the findings of a program, printed once more before its last line, since of a
// long output often only the end is kept. They are safe for concurrent use.
type Findings struct {
	mu    sync.Mutex
	texts []string
}

// Add adds a finding. Of one with more than 30 lines the first ones are kept.
func (f *Findings) Add(format string, args ...any) {
	lines := strings.Split(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n")
	if more := len(lines) - findingLines; more > 0 {
		lines = append(lines[:findingLines], fmt.Sprintf("and %d lines more", more))
	}
	for i, line := range lines {
		if len(line) > lineLength {
			lines[i] = strings.ToValidUTF8(line[:lineLength], "") + " ..."
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.texts = append(f.texts, strings.Join(lines, "\n    ")+"\n")
}

// Print writes all findings in the order in which they were added, and nothing when there is none.
func (f *Findings) Print(w io.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.texts) > 0 {
		_, _ = fmt.Fprintf(w, "\n== found\n%s\n", strings.Join(f.texts, "")) // nowhere else to say it
	}
}
