package fallback

import "sync"

// tasks are goroutines that close waits for. Unlike with a sync.WaitGroup, more of them
// may begin while close waits: a Pull that takes the result of the last one may begin
// another. None begins after close has returned. The zero value is ready to use.
type tasks struct {
	mu     sync.Mutex
	under  int
	closed bool
	last   chan struct{} // closed when close need not wait any more; nil while it does not
}

// open lets tasks begin again after close.
func (e *tasks) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = false
}

// begin runs f in a goroutine and returns true, or returns false after close.
func (e *tasks) begin(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.under++
	go func() {
		defer e.end()
		f()
	}()
	return true
}

func (e *tasks) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.under--; e.under == 0 && e.last != nil {
		e.closeNow()
	}
}

// close waits until no task is running, and lets none begin after that.
func (e *tasks) close() {
	e.mu.Lock()
	if e.last == nil { // otherwise another close is waiting already
		e.last = make(chan struct{})
	}
	last := e.last
	if e.under == 0 {
		e.closeNow()
	}
	e.mu.Unlock()
	<-last
}

// closeNow ends the waits of close. The caller holds mu.
func (e *tasks) closeNow() {
	e.closed = true
	close(e.last)
	e.last = nil
}
