package pgnotify

import (
	"sync"
	"time"
)

// paceWindow is the time whose expected need a poll takes in advance.
const paceWindow = 500 * time.Millisecond

// pace measures how many notifications this process pulls within paceWindow. A
// poll takes so many more than the pull asked for. A busy worker pulls few at a
// time, because few of its slots become free at once; so it does not need a
// statement for each pull. An idle worker takes only what it asked for.
type pace struct {
	mu            sync.Mutex
	began         time.Time // of the window
	current, last int       // handed out in this window, and in the one before
}

func (p *pace) record(now time.Time, count int) {
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
