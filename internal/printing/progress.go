package printing

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// isTerminal reports whether a writer is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// Progress shows how far a long command is.
type Progress struct {
	bar *progressbar.ProgressBar // nil without a terminal
}

// throttle is the least time between two drawings of the bar.
const throttle = 100 * time.Millisecond

// Progress shows a progress bar for a number of things. It does so only on a terminal, and
// not with JSON.
func (p *Printer) Progress(description string, total int, things string) Progress {
	if !p.terminal || p.JSON {
		return Progress{}
	}
	return Progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(p.stderr),
		progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString(things),
		progressbar.OptionThrottle(throttle),
		progressbar.OptionClearOnFinish(),
	)}
}

// Add advances the bar by n.
func (p Progress) Add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // an error only concerns the display
	}
}

// End removes the bar from the screen.
func (p Progress) End() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
