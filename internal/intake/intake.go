package intake

import (
	"container/list"
	"net/http"
	"sync"
)

// RequestBytes is about the memory that a request takes in addition to its header and body.
const RequestBytes = 32 << 10

// headerBytes is about the memory that each value of a header takes in addition to its bytes.
const headerBytes = 160

// Intake bounds the memory of the current requests. An unknown sender can open a
// connection and send half a body. So when there is no room for another request, the
// body whose reading began first is cut off: a sender whose body arrives at once is
// served, however many others never complete theirs.
type Intake struct {
	mu      sync.Mutex
	room    int64
	reading list.List // of *Reservation, the oldest first
}

// New makes an Intake with room for a number of bytes.
func New(bytes int64) *Intake { return &Intake{room: bytes} }

// Reservation is the memory reserved for one request. The mutex of the Intake guards
// its fields.
type Reservation struct {
	in      *Intake
	bytes   int64
	cutOff  func()        // ends the reading; nil when it has ended
	element *list.Element // among those that are reading
}

// Reserve reserves memory for a request whose body is to be read. cutOff ends the reading
// from another goroutine, and must not block. The result is nil if there is no room, and
// no body that could be cut off.
func (in *Intake) Reserve(bytes int64, cutOff func()) *Reservation {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.room < bytes {
		oldest := in.reading.Front()
		if oldest == nil {
			return nil
		}
		h := oldest.Value.(*Reservation)
		h.leave()
		h.release()
		h.cutOff()
	}
	in.room -= bytes
	h := &Reservation{in: in, bytes: bytes, cutOff: cutOff}
	h.element = in.reading.PushBack(h)
	return h
}

// leave removes h from the list of bodies being read. The caller holds the mutex.
func (h *Reservation) leave() {
	h.in.reading.Remove(h.element)
	h.element = nil
}

// release frees the memory of h. The caller holds the mutex.
func (h *Reservation) release() {
	h.in.room += h.bytes
	h.bytes = 0
}

// StopReading records that the body has been read, or will not be. It returns false if
// the body was cut off. After it cutOff is not called any more.
func (h *Reservation) StopReading() bool {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	if h.element == nil {
		return false
	}
	h.leave()
	return true
}

// Free frees the memory of h, once. The body must not be being read any more.
func (h *Reservation) Free() {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	h.release()
}

// SizeOf is about the memory that a request takes until it is answered, with a body of at most a number of bytes.
func SizeOf(r *http.Request, most int64) int64 {
	size := int64(RequestBytes) + most
	if r.ContentLength >= 0 {
		size = RequestBytes + r.ContentLength
	}
	for name, values := range r.Header {
		for _, value := range values {
			size += int64(headerBytes + len(name) + len(value))
		}
	}
	return size
}
