package intake

import (
	"sync"
	"time"
)

// LogBurst is how many lines of one kind are written within LogWindow.
const (
	LogBurst  = 20
	LogWindow = 10 * time.Second
)

// LogLimiter bounds by their kind the log lines that senders can cause before they have shown who they are. The zero value is ready. It is safe for concurrent use.
type LogLimiter struct {
	mu    sync.Mutex
	begun map[string]*int // how many lines of a kind there were since the first
}

// Write writes a line of a kind, unless there were LogBurst of it within LogWindow of the first. When that is over, leftOut is called with how many
// were not written, if any. The caller sees to it that there are few kinds. write and leftOut must not call Write.
func (l *LogLimiter) Write(kind string, write func(), leftOut func(lines int)) {
	l.mu.Lock()
	lines := l.begun[kind]
	if lines == nil {
		if l.begun == nil {
			l.begun = map[string]*int{}
		}
		lines = new(int)
		l.begun[kind] = lines
		time.AfterFunc(LogWindow, func() {
			l.mu.Lock()
			delete(l.begun, kind)
			more := *lines - LogBurst
			l.mu.Unlock()
			if more > 0 {
				leftOut(more)
			}
		})
	}
	*lines++
	within := *lines <= LogBurst
	l.mu.Unlock()
	if within {
		write()
	}
}
