package pgnotify

import (
	"sync"
	"time"
)

// paceWindow is how far ahead a look takes, in time.
const paceWindow = 500 * time.Millisecond

// pace tells how many notifications this process goes through within paceWindow.
// A look takes as many more than it was asked for, so that a busy worker, whose
// pulls are small because few of its slots come free at a time, does not need a
// statement for each. One that is idle takes what it was asked for.
type pace struct {
	mu            sync.Mutex
	began         time.Time // of the window
	current, last int       // handed out in this window, and in the one before
}

func (p *pace) note(now time.Time, count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(now)
	p.current += count
}

func (p *pace) expected(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roll(now)
	return max(p.current, p.last)
}

func (p *pace) roll(now time.Time) {
	switch passed := now.Sub(p.began); {
	case passed >= 2*paceWindow:
		p.began, p.last, p.current = now, 0, 0
	case passed >= paceWindow:
		p.began, p.last, p.current = now, p.current, 0
	}
}
