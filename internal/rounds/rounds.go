// Package rounds finds loops that have stopped going round, so that a program in which one hangs
// can be restarted. A loop says before each step how long that may take, by the time-outs of what
// it calls; a database or a notifier that hangs makes it late, and does not stop it.
package rounds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// grace is how much longer than announced a step may take: a machine may be busy.
	grace = 30 * time.Second
	// sure is for how long a loop must have been seen late: all are, for a moment, in a program
	// that was frozen and goes on.
	sure = 5 * time.Second
)

// Watch watches the loops of a part of a program. It is safe for concurrent use.
type Watch struct {
	mu    sync.Mutex
	loops []*Loop
}

// Loop is one of them. Its methods are for the loop itself; those of a nil Loop do nothing.
type Loop struct {
	watch *Watch
	name  string

	// Owned by watch.mu:
	began time.Time // the step
	due   time.Time // its end; zero while the loop waits for work, or has ended
	late  time.Time // since when it was seen to be late; zero if it was not
}

// Loop adds a loop. Its name is for the operator.
func (w *Watch) Loop(name string) *Loop {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &Loop{watch: w, name: name}
	w.loops = append(w.loops, l)
	return l
}

// Within says that the loop begins a step that takes no longer than this.
func (l *Loop) Within(most time.Duration) {
	if l != nil {
		now := time.Now()
		l.set(now, now.Add(most+grace))
	}
}

// Waits says that the loop waits for work, for any time.
func (l *Loop) Waits() {
	if l != nil {
		l.set(time.Time{}, time.Time{})
	}
}

// Ends says that the loop has ended.
func (l *Loop) Ends() {
	if l != nil {
		l.watch.mu.Lock()
		defer l.watch.mu.Unlock()
		l.watch.loops = slices.DeleteFunc(l.watch.loops, func(other *Loop) bool { return other == l })
	}
}

func (l *Loop) set(began, due time.Time) {
	l.watch.mu.Lock()
	defer l.watch.mu.Unlock()
	l.began, l.due, l.late = began, due, time.Time{}
}

// Stalled returns an error that names the loops that have not come round for too long, or nil.
// It has to be asked more than once before it says so.
func (w *Watch) Stalled() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	var stalled []string
	for _, l := range w.loops {
		switch {
		case l.due.IsZero() || now.Before(l.due):
		case l.late.IsZero():
			l.late = now
		case now.Sub(l.late) >= sure:
			stalled = append(stalled, fmt.Sprintf("the %s has not gone round for %s", l.name, now.Sub(l.began).Truncate(time.Second)))
		}
	}
	if len(stalled) == 0 {
		return nil
	}
	return errors.New(strings.Join(stalled, "; "))
}
