package webhook

import (
	"container/list"
	"net/http"
	"sync"
)

const (
	// defaultBufferedBytes is the memory that all requests may take together, unless
	// single bodies may be so large that only a few would have room.
	defaultBufferedBytes = 16 << 20
	leastBodies          = 8
	// requestBytes and headerBytes are about the memory that a request, and each value of
	// its header, takes in addition to its bytes.
	requestBytes = 32 << 10
	headerBytes  = 160
)

// intake bounds the memory of the current requests. An unknown sender can open a
// connection and send half a body. So when there is no room for another request, the
// body whose reading began first is cut off: a sender whose body arrives at once is
// served, however many others never complete theirs.
type intake struct {
	mu      sync.Mutex
	room    int64
	reading list.List // of *reservation, the oldest first
}

// reservation is the memory reserved for one request. The mutex of the intake guards
// its fields.
type reservation struct {
	in      *intake
	bytes   int64
	cutOff  func()        // ends the reading; nil when it has ended
	element *list.Element // among those that are reading
}

// reserve reserves memory for a request whose body is to be read. cutOff ends the reading
// from another goroutine, and must not block. The result is nil if there is no room, and
// no body that could be cut off.
func (in *intake) reserve(bytes int64, cutOff func()) *reservation {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.room < bytes {
		oldest := in.reading.Front()
		if oldest == nil {
			return nil
		}
		h := oldest.Value.(*reservation)
		h.leave()
		h.release()
		h.cutOff()
	}
	in.room -= bytes
	h := &reservation{in: in, bytes: bytes, cutOff: cutOff}
	h.element = in.reading.PushBack(h)
	return h
}

// leave removes h from the list of bodies being read. The caller holds the mutex.
func (h *reservation) leave() {
	h.in.reading.Remove(h.element)
	h.element = nil
}

// release frees the memory of h. The caller holds the mutex.
func (h *reservation) release() {
	h.in.room += h.bytes
	h.bytes = 0
}

// stopReading records that the body has been read, or will not be. It returns false if
// the body was cut off. After it cutOff is not called any more.
func (h *reservation) stopReading() bool {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	if h.element == nil {
		return false
	}
	h.leave()
	return true
}

// free frees the memory of h, once.
func (h *reservation) free() {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	h.release()
}

// sizeOf is about the memory that a request takes until it is answered.
func sizeOf(r *http.Request, most int64) int64 {
	size := int64(requestBytes) + most
	if r.ContentLength >= 0 {
		size = requestBytes + r.ContentLength
	}
	for name, values := range r.Header {
		for _, value := range values {
			size += int64(headerBytes + len(name) + len(value))
		}
	}
	return size
}
