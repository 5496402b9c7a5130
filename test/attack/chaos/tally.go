package main

import (
	"maps"
	"sync"
)

// tally counts the faults of the plan that were carried out. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[kind]int
}

func newTally() *tally { return &tally{counts: map[kind]int{}} }

// count counts one.
func (t *tally) count(k kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[k]++
}

// all are the counts so far.
func (t *tally) all() map[kind]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

// kills counts what was killed.
func (t *tally) kills() (n int) {
	for k, count := range t.all() {
		if k.kills() {
			n += count
		}
	}
	return n
}
