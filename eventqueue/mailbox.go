package eventqueue

import (
	"sync"
	"time"
)

// mailbox holds what many hand in, one by one, for one that takes it out in
// batches. Handing in never blocks; what bounds a mailbox is how many there are
// who hand in.
type mailbox[T any] struct {
	mu     sync.Mutex
	items  []T
	closed bool
	filled chan struct{} // holds a token when there may be something new
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{filled: make(chan struct{}, 1)} }

// put hands in.
func (m *mailbox[T]) put(item T) {
	m.mu.Lock()
	m.items = append(m.items, item)
	m.mu.Unlock()
	m.wake()
}

// close says that nothing more is handed in.
func (m *mailbox[T]) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.wake()
}

func (m *mailbox[T]) wake() {
	select {
	case m.filled <- struct{}{}:
	default:
	}
}

// takeNow appends what is there to batch, up to most in all.
func (m *mailbox[T]) takeNow(batch []T, most int) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.items), most-len(batch))
	batch = append(batch, m.items[:n]...)
	rest := copy(m.items, m.items[n:])
	clear(m.items[rest:])
	m.items = m.items[:rest]
	return batch
}

// wait blocks until something may be there, and tells so; it tells false when the
// mailbox is closed and empty, or when one of the channels, which may be nil, says
// that it has waited for long enough.
func (m *mailbox[T]) wait(lingered <-chan time.Time, done <-chan struct{}) bool {
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
