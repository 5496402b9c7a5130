package worker

import (
	"context"
	"sync"
)

// budget counts how many more events a bounded worker may take. Unused parts are given back; when
// all of it has been used, by runs that are over, the bound is reached.
type budget struct {
	reached func() // called once

	mu    sync.Mutex
	left  int // not taken
	out   int // taken by pulls and claims under way, and by events that are held
	freed chan struct{}
}

func newBudget(n int, reached func()) *budget {
	return &budget{reached: reached, left: n, freed: make(chan struct{})}
}

// take waits until something is left and takes as much as is, up to most.
func (a *budget) take(ctx context.Context, most int) (int, error) {
	for {
		a.mu.Lock()
		n, freed := min(a.left, most), a.freed
		a.left -= n
		a.out += n
		a.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// giveBack returns what was not used for an event.
func (a *budget) giveBack(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out -= n
	a.left += n
	close(a.freed)
	a.freed = make(chan struct{})
}

// use is for events that were claimed and whose runs are over.
func (a *budget) use(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out -= n
	if a.left == 0 && a.out == 0 && n > 0 {
		a.reached()
	}
}
