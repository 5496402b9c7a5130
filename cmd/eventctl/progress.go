package main

import (
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// isTerminal tells whether somebody watches a writer.
func isTerminal(w io.Writer) bool {
	file, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// progress shows how far a long command is, on a terminal only.
type progress struct {
	bar *progressbar.ProgressBar // nil: nobody watches
}

// The bar is redrawn at most so often.
const progressThrottle = 100 * time.Millisecond

func (a *app) progress(description string, total int) progress {
	if !a.terminal || a.json {
		return progress{}
	}
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(a.stderr),
		progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("events"),
		progressbar.OptionThrottle(progressThrottle),
		progressbar.OptionClearOnFinish(),
	)}
}

func (p progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n) // it is only for show
	}
}

// end takes the bar off the screen.
func (p progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}

// lockedWriter keeps the lines of several goroutines apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
