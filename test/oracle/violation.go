package oracle

import (
	"fmt"
	"strings"

	"eventsv2/eventqueue"
)

// Violation is a promise that was broken.
type Violation struct {
	Invariant string // such as I5
	Event     eventqueue.EventID
	Problem   string
	// Evidence are the records and faults from which it follows, one per line.
	Evidence []string
}

// String shows the violation with its evidence, on several lines.
func (v Violation) String() string {
	var b strings.Builder
	b.WriteString(v.Invariant)
	if v.Event != 0 {
		fmt.Fprintf(&b, " event %s", v.Event)
	}
	fmt.Fprintf(&b, ": %s", v.Problem)
	for _, line := range v.Evidence {
		b.WriteString("\n    ")
		b.WriteString(line)
	}
	return b.String()
}
