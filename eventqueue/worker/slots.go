package worker

import (
	"context"
	"sync"
	"time"
)

// slotsLinger is how long a receiver waits for more slots when few are free: one statement for many
// events costs little more than one for few. With a quarter of them free, as when there is little
// to do, it does not wait.
const slotsLinger = 50 * time.Millisecond

// slots counts how many more events the worker may hold.
type slots struct {
	bound  *budget       // of a bounded worker; nil when it may take any number
	enough int           // worth a statement
	taking chan struct{} // held by the goroutine that may take next

	mu        sync.Mutex
	free      int
	freed     chan struct{} // closed when slots come back; nil when no goroutine waits
	next      *nextTaker    // that gets the next ones; nil when there is none
	wentAhead bool          // the last taker of takeNext went before others
}

// nextTaker waits in takeNext.
type nextTaker struct {
	most int
	took chan int // has room for what it gets
}

func newSlots(n int) *slots {
	return &slots{enough: max(n/4, 1), taking: make(chan struct{}, 1), free: n}
}

// take waits until slots are free and takes as many as are, up to most, and of a bounded worker as
// many as it may still use. Waiting goroutines are served in the order in which they came.
func (s *slots) take(ctx context.Context, most int) (int, error) {
	n, err := s.takeFree(ctx, most)
	if err != nil || s.bound == nil {
		return n, err
	}
	// Last: a goroutine that waits here withholds no slots that another could use.
	allowed, err := s.bound.take(ctx, n)
	s.put(n - allowed)
	return allowed, err
}

func (s *slots) takeFree(ctx context.Context, most int) (int, error) {
	select {
	case s.taking <- struct{}{}:
		defer func() { <-s.taking }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var lingered <-chan time.Time
	enough := min(s.enough, most)
	for {
		n, freed := s.takeNow(most, enough)
		if n > 0 {
			return n, nil
		}
		if lingered == nil && enough > 1 {
			timer := time.NewTimer(slotsLinger)
			defer timer.Stop()
			lingered = timer.C
		}
		select {
		case <-freed:
		case <-lingered:
			enough = 1
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// takeNow takes slots when enough are free; otherwise the channel is closed when there are more.
func (s *slots) takeNow(most, enough int) (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free >= enough {
		n := min(s.free, most)
		s.free -= n
		return n, nil
	}
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return 0, s.freed
}

// takeNext is take for one that goes before those who wait, unless it has done so the last time, as wentFirst
// says: so these get slots as well. It is for one goroutine.
func (s *slots) takeNext(ctx context.Context, most int) (n int, err error) {
	s.mu.Lock()
	if s.wentAhead {
		s.wentAhead = false
		s.mu.Unlock()
		return s.take(ctx, most)
	}
	next := &nextTaker{most, make(chan int, 1)}
	s.next = next
	s.serveNext()
	s.mu.Unlock()
	select {
	case n = <-next.took:
	case <-ctx.Done():
		s.mu.Lock()
		served := s.next != next
		s.next = nil
		s.mu.Unlock()
		if served {
			s.put(<-next.took)
		}
		return 0, ctx.Err()
	}
	if s.bound == nil {
		return n, nil
	}
	allowed, err := s.bound.take(ctx, n)
	s.put(n - allowed)
	return allowed, err
}

// wentFirst is called when slots of takeNext are used.
func (s *slots) wentFirst() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wentAhead = true
}

// serveNext gives free slots to the one that goes before others. mu is held.
func (s *slots) serveNext() {
	if s.next == nil || s.free == 0 {
		return
	}
	n := min(s.free, s.next.most)
	s.free -= n
	s.next.took <- n
	s.next = nil
}

// tryTake takes free slots, up to most, except for some that it leaves, without waiting. Of a
// bounded worker it takes none.
func (s *slots) tryTake(most, leave int) int {
	if s.bound != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := max(min(s.free-leave, most), 0)
	s.free -= n
	return n
}

// give returns slots that were not used for an event.
func (s *slots) give(n int) {
	s.put(n)
	if s.bound != nil {
		s.bound.giveBack(n)
	}
}

// vacated counts slots whose events are over: their handlers ran, or were not to run yet.
type vacated struct{ ran, unused int }

// vacate returns slots all at once: a goroutine that waits for some takes as many as there are.
func (s *slots) vacate(v vacated) {
	s.put(v.ran + v.unused)
	if s.bound == nil {
		return
	}
	if v.unused > 0 {
		s.bound.giveBack(v.unused)
	}
	s.bound.use(v.ran)
}

func (s *slots) put(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += n
	s.serveNext()
	if s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// Slots are how a worker is occupied at a moment.
type Slots struct {
	// Of is how many events the worker may hold, and Busy how many it holds.
	Of, Busy int
	// Hung is how many handlers have not returned though their contexts have ended. Those
	// that were given up are among them, and hold no slot.
	Hung int
	// OldestSince is since when the run has been held that has been held for longest; the zero time if none is.
	OldestSince time.Time
}
