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

// Intake bounds the memory of the current requests. A sender can open a connection and
// send half a body. So when there is no room for another request, bodies are cut off: of
// the sender who takes the most, the one whose reading began first. So whose bodies arrive
// at once is served, however many others never complete theirs.
type Intake struct {
	mu      sync.Mutex
	room    int64
	begun   int64
	senders map[string]*sender // those who have a reservation
}

// sender uses room. The mutex of the Intake guards its fields.
type sender struct {
	bytes   int64
	made    int       // reservations that are not freed
	reading list.List // of *Reservation, the oldest first
}

// New makes an Intake with room for a number of bytes.
func New(bytes int64) *Intake { return &Intake{room: bytes, senders: map[string]*sender{}} }

// Reservation is the memory reserved for one request. The mutex of the Intake guards
// its fields.
type Reservation struct {
	in      *Intake
	sender  string
	bytes   int64
	began   int64         // its place among all
	cutOff  func()        // ends the reading
	element *list.Element // among those of its sender that are reading; nil when the reading has ended
	freed   bool
}

// Reserve reserves memory for a request of a sender whose body is to be read. cutOff ends
// the reading from another goroutine, and must not block. The result is nil if there is no
// room, and too few bodies could be cut off: then none is.
func (in *Intake) Reserve(from string, bytes int64, cutOff func()) *Reservation {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[from]
	if s == nil {
		s = &sender{}
	}
	inTheWay, enough := in.inTheWay(s, bytes)
	if !enough {
		return nil
	}
	for _, h := range inTheWay {
		h.leave()
		h.release()
		h.cutOff()
	}
	in.senders[from] = s
	in.room -= bytes
	in.begun++
	h := &Reservation{in: in, sender: from, bytes: bytes, began: in.begun, cutOff: cutOff}
	s.made++
	s.bytes += bytes
	h.element = s.reading.PushBack(h)
	return h
}

// inTheWay returns the bodies to cut off so that a sender has room for a number of bytes,
// and whether that is enough. Who takes less than the sender would loses nothing. The
// caller holds the mutex.
func (in *Intake) inTheWay(of *sender, bytes int64) (found []*Reservation, enough bool) {
	type left struct {
		bytes int64
		next  *list.Element
	}
	room, own := in.room, &left{of.bytes + bytes, of.reading.Front()}
	if room >= bytes {
		return nil, true
	}
	all := []*left{own}
	for _, s := range in.senders {
		if s != of {
			all = append(all, &left{s.bytes, s.reading.Front()})
		}
	}
	for room < bytes {
		var most *left
		for _, l := range all {
			if l.next == nil || l.bytes < own.bytes {
				continue
			}
			if most == nil || l.bytes > most.bytes || l.bytes == most.bytes && reservation(l.next).began < reservation(most.next).began {
				most = l
			}
		}
		if most == nil {
			return nil, false
		}
		h := reservation(most.next)
		found = append(found, h)
		room += h.bytes
		most.bytes -= h.bytes
		most.next = most.next.Next()
	}
	return found, true
}

func reservation(e *list.Element) *Reservation { return e.Value.(*Reservation) }

// leave removes h from the list of bodies being read. The caller holds the mutex.
func (h *Reservation) leave() {
	h.in.senders[h.sender].reading.Remove(h.element)
	h.element = nil
}

// release frees the memory of h. The caller holds the mutex.
func (h *Reservation) release() {
	h.in.senders[h.sender].bytes -= h.bytes
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

// Free frees the memory of h, once, and ends the reading.
func (h *Reservation) Free() {
	h.in.mu.Lock()
	defer h.in.mu.Unlock()
	if h.freed {
		return
	}
	h.freed = true
	if h.element != nil {
		h.leave()
	}
	h.release()
	s := h.in.senders[h.sender]
	if s.made--; s.made == 0 {
		delete(h.in.senders, h.sender)
	}
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
