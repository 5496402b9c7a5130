package eventqueue

import (
	"context"
	"sync"
)

// slots counts how many more events may be in hand.
type slots struct {
	mu    sync.Mutex
	free  int
	freed chan struct{} // closed and replaced when slots come back
}

func newSlots(n int) *slots { return &slots{free: n, freed: make(chan struct{})} }

// take waits until a slot is free and takes as many as are, up to max.
func (s *slots) take(ctx context.Context, max int) (int, error) {
	for {
		s.mu.Lock()
		n := min(s.free, max)
		s.free -= n
		freed := s.freed
		s.mu.Unlock()
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

// give returns slots.
func (s *slots) give(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		close(s.freed)
		s.freed = make(chan struct{})
	}
	s.free += n
}
