// Package cause decides which failures of a call that keeps failing are logged: those whose cause
// has changed, and each cause once a minute at most, so that neither a second cause nor the rest of
// the log is hidden by the first.
package cause

import (
	"errors"
	"time"
)

const (
	// again is how long a cause is not logged a second time.
	again = time.Minute
	// most is how many causes are logged within that time.
	most = 10
)

// Log remembers which causes were logged. The zero value is ready to use. It is not safe for
// concurrent use.
type Log struct {
	last   string
	logged map[string]time.Time
}

// Worth reports whether a failure is to be logged, and takes it for logged then. The first failure
// after a success always is; any other if its cause is not the last one that was logged.
func (l *Log) Worth(err error, first bool) bool {
	now, cause := time.Now(), of(err)
	for other, at := range l.logged {
		if now.Sub(at) >= again {
			delete(l.logged, other)
		}
	}
	if !first {
		if _, recently := l.logged[cause]; recently || cause == l.last || len(l.logged) >= most {
			return false
		}
	}
	if l.logged == nil {
		l.logged = map[string]time.Time{}
	}
	l.last, l.logged[cause] = cause, now
	return true
}

// of identifies the cause of an error: the advice for it if it has one, since the
// text of the same failure may name another port each time, and otherwise its text.
func of(err error) string {
	if err == nil {
		return ""
	}
	var advised interface{ Advice() string }
	if errors.As(err, &advised) {
		return advised.Advice()
	}
	return err.Error()
}
