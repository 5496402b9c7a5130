// Package runlog collects what is logged with the context of a run, for its event.
package runlog

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// maxLines is how many lines of a run are retained: the last ones.
	maxLines = 50
	// MaxBytes is how long the text of a run may be.
	MaxBytes = 8 << 10
	// noteBytes is room for the line that counts those that are left out.
	noteBytes = 64
)

// Key is the key of a context's value that is the *Log of the run whose context it is.
type Key struct{}

// Log is what a run has logged, and is safe for concurrent use. The zero value is an empty one; it allocates with its first line.
type Log struct{ lines atomic.Pointer[lines] }

// lines are those that are retained.
type lines struct {
	mu     sync.Mutex
	last   []string
	bytes  int // of last, with a line feed for each
	left   int // those before last, which are left out
	closed bool
}

// over stands for the lines of a run that collects none: it has ended, or never did.
var over = &lines{closed: true}

// Add adds a line, unless the run has ended. What Postgres cannot store in a text is replaced.
func (l *Log) Add(line string) {
	if l.lines.Load() == nil {
		l.lines.CompareAndSwap(nil, new(lines))
	}
	l.lines.Load().add(line)
}

func (ls *lines) add(line string) {
	const most = MaxBytes - noteBytes
	line = strings.ReplaceAll(strings.ToValidUTF8(line, "\uFFFD"), "\x00", "\uFFFD")
	if len(line) >= most {
		line = strings.Clone(strings.ToValidUTF8(line[:most-1], "")) // no half rune at the end
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return
	}
	ls.last, ls.bytes = append(ls.last, line), ls.bytes+len(line)+1
	out := 0
	for len(ls.last)-out > maxLines || ls.bytes > most {
		ls.bytes -= len(ls.last[out]) + 1
		out++
	}
	ls.last, ls.left = slices.Delete(ls.last, 0, out), ls.left+out
}

// Text returns the lines so far; empty if there are none.
func (l *Log) Text() string {
	if ls := l.lines.Load(); ls != nil {
		return ls.text(false)
	}
	return ""
}

// End is Text for a run that has ended: what is added after it is dropped.
func (l *Log) End() string {
	if ls := l.lines.Swap(over); ls != nil {
		return ls.text(true)
	}
	return ""
}

func (ls *lines) text(ends bool) string {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = ls.closed || ends
	text := strings.Join(ls.last, "\n")
	switch ls.left {
	case 0:
		return text
	case 1:
		return "1 line before these is left out\n" + text
	default:
		return fmt.Sprintf("%d lines before these are left out\n%s", ls.left, text)
	}
}
