package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// printer prints what happens: short lines with the time since the start, and the progress,
// as a bar on a terminal and as lines elsewhere. It is safe for concurrent use. It ignores
// errors of the output.
type printer struct {
	mu      sync.Mutex
	out     io.Writer
	began   time.Time
	total   int
	bar     *progressbar.ProgressBar // nil: no terminal
	done    int
	verdict string
}

func newPrinter(out io.Writer, total int) *printer {
	s := &printer{out: out, began: time.Now(), total: total}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetDescription("         "),
			progressbar.OptionSetWidth(40),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionClearOnFinish(),
		)
	}
	return s
}

// say prints one line.
func (s *printer) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(fmt.Sprintf(format, args...))
}

func (s *printer) line(text string) {
	s.clearBar()
	_, _ = fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.began).Seconds(), text)
}

// progress shows how many events have ended. Without a terminal it prints a line
// at each quarter.
func (s *printer) progress(done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.done
	s.done = max(s.done, min(done, s.total))
	switch {
	case s.done == before:
	case s.bar != nil:
		_ = s.bar.Set(s.done)
	case 4*s.done/s.total > 4*before/s.total:
		s.line(fmt.Sprintf("%d of %d events have ended", s.done, s.total))
	}
}

// conclude keeps the verdict, which is printed by last.
func (s *printer) conclude(verdict string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdict = verdict
}

// last prints the verdict, if there is one, as the last line of all.
func (s *printer) last() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearBar()
	if s.verdict != "" {
		_, _ = fmt.Fprintln(s.out, s.verdict)
	}
}

func (s *printer) clearBar() {
	if s.bar != nil {
		_ = s.bar.Clear()
	}
}
