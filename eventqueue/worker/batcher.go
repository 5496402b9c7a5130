package worker

import (
	"sync"
	"time"
)

// batcher collects items from many goroutines, one by one, for one that takes them out in batches.
// Adding never blocks; the size is only bounded by the number of goroutines that add.
type batcher[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	filled chan struct{} // holds a token when there may be something new
}

func newBatcher[T any]() *batcher[T] { return &batcher[T]{filled: make(chan struct{}, 1)} }

// put adds items. A batch that has one of them has them all, unless it is full.
func (m *batcher[T]) put(items ...T) {
	m.mu.Lock()
	m.items = append(m.items, items...)
	m.mu.Unlock()
	m.wake()
}

// putNewest adds items. When the batcher has most items already, it drops the older half and
// returns how many those were.
func (m *batcher[T]) putNewest(most int, items ...T) (dropped int) {
	m.mu.Lock()
	if len(m.items) >= most {
		dropped = len(m.items) - most/2
		rest := copy(m.items, m.items[dropped:])
		clear(m.items[rest:])
		m.items = m.items[:rest]
	}
	m.items = append(m.items, items...)
	m.mu.Unlock()
	m.wake()
	return dropped
}

// close says that no more items are added.
func (m *batcher[T]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.wake()
}

func (m *batcher[T]) wake() {
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

// takeNow appends the collected items to batch, up to most in all.
func (m *batcher[T]) takeNow(batch []T, most int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.items), most-len(batch))
	batch = append(batch, m.items[:n]...)
	rest := copy(m.items, m.items[n:])
	clear(m.items[rest:])
	m.items = m.items[:rest]
	return batch
}

// wait blocks until there may be an item, and returns true then. It returns false when the batcher
// is closed and empty, or when one of the channels, which may be nil, ends the wait.
func (m *batcher[T]) wait(lingered <-chan time.Time, done <-chan struct{}) bool {
	m.mu.Lock()
	there, closed := len(m.items) > 0, m.closed
	m.mu.Unlock()
	if there || closed {
		return there
	}
	select {
	case <-m.filled:
		return true
	case <-lingered:
		return false
	case <-done:
		return false
	}
}
