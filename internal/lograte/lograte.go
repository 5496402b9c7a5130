// Package lograte bounds how many lines of the log those can cause who have not shown who they are. What is left out is counted
// in a line of its own.
package lograte

import (
	"sync"
	"time"
)

// Most is how many lines of one kind are written Within a time.
const (
	Most   = 20
	Within = 10 * time.Second
)

// Lines bounds lines by their kind. The zero value is ready. It is safe for concurrent use.
type Lines struct {
	mu    sync.Mutex
	begun map[string]*int // how many lines of a kind there were since the first
}

// Write writes a line of a kind, unless there were Most of it Within the time since the first. When that is over, leftOut is called with how many
// were not written, if any. The caller sees to it that there are few kinds. write and leftOut must not call Write.
func (l *Lines) Write(kind string, write func(), leftOut func(lines int)) {
	l.mu.Lock()
	lines := l.begun[kind]
	if lines == nil {
		if l.begun == nil {
			l.begun = map[string]*int{}
		}
		lines = new(int)
		l.begun[kind] = lines
		time.AfterFunc(Within, func() {
			l.mu.Lock()
			delete(l.begun, kind)
			more := *lines - Most
			l.mu.Unlock()
			if more > 0 {
				leftOut(more)
			}
		})
	}
	*lines++
	within := *lines <= Most
	l.mu.Unlock()
	if within {
		write()
	}
}
