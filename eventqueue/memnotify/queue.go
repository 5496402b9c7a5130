package memnotify

import (
	"math"
	"time"

	"eventsv2/eventqueue"
)

// slotState is where the notification of a slot is.
type slotState uint8

const (
	free    slotState = iota // the slot is empty
	ready                    // in the fifo: the next Pull gets it
	waiting                  // in the heap: leased or delayed until its due
)

type slot struct {
	notification eventqueue.Notification
	generation   uint32
	state        slotState
	heapAt       int // valid while waiting
}

// never is the due of an empty heap.
const never = time.Duration(math.MaxInt64)

// queue has the notifications. It has no lock and no clock, and does not wait: its
// caller holds the lock and passes the time.
type queue struct {
	pages []*[pageSlots]slot // in pages, so that growing moves no slot
	used  int                // slots in use or free
	empty []uint32           // slots that are free
	fifo  fifo               // may hold stale references; see next
	ready int                // slots that are ready
	later timeHeap
}

// pageSlots is how many slots are made at once.
const pageSlots = 1024

func (b *queue) slot(at uint32) *slot { return &b.pages[at/pageSlots][at%pageSlots] }

func newQueue() *queue {
	b := &queue{}
	b.later.moved = func(slot uint32, at int) { b.slot(slot).heapAt = at }
	return b
}

func (b *queue) live() int { return b.ready + len(b.later.entries) }

func (b *queue) nextDue() time.Duration {
	if len(b.later.entries) == 0 {
		return never
	}
	return b.later.entries[0].due
}

func (b *queue) add(n eventqueue.Notification) {
	var at uint32
	if last := len(b.empty) - 1; last >= 0 {
		at, b.empty = b.empty[last], b.empty[:last]
	} else {
		at = uint32(b.used)
		if b.used%pageSlots == 0 {
			b.pages = append(b.pages, new([pageSlots]slot))
		}
		b.used++
	}
	b.slot(at).notification = n
	b.makeReady(at)
}

func (b *queue) makeReady(at uint32) {
	s := b.slot(at)
	s.state = ready
	b.ready++
	b.fifo.push(leaseRef{at, s.generation})
}

// promote makes ready what is due.
func (b *queue) promote(now time.Duration) {
	for b.nextDue() <= now {
		at := b.later.entries[0].slot
		b.later.remove(0)
		b.makeReady(at)
	}
}

// next leases the oldest ready notification until due. There must be one.
func (b *queue) next(due time.Duration) (eventqueue.Notification, leaseRef) {
	for {
		// A reference is stale when the last holder of its notification
		// acknowledged it or hid it again while the reference was in the fifo.
		ref := b.fifo.pop()
		s := b.slot(ref.slot)
		if s.generation != ref.generation || s.state != ready {
			continue
		}
		b.ready--
		s.generation++
		b.hide(ref.slot, due)
		return s.notification, leaseRef{ref.slot, s.generation}
	}
}

func (b *queue) hide(at uint32, due time.Duration) {
	b.slot(at).state = waiting
	b.later.push(hidden{due, at})
}

// isCurrent reports whether ref is the last delivery of a notification that is not
// acknowledged. It stays true after the lease has ended: until the notification is
// delivered again, its last holder may still acknowledge it.
func (b *queue) isCurrent(ref leaseRef) bool {
	if int(ref.slot) >= b.used {
		return false
	}
	s := b.slot(ref.slot)
	return s.state != free && s.generation == ref.generation
}

// drop deletes the notification.
func (b *queue) drop(at uint32) {
	s := b.slot(at)
	b.takeOut(at)
	s.state = free
	s.generation++
	s.notification = eventqueue.Notification{}
	b.empty = append(b.empty, at)
}

// takeOut removes a notification from the count of ready ones or from the heap. Its
// reference may stay in the fifo, and is stale there.
func (b *queue) takeOut(at uint32) {
	s := b.slot(at)
	if s.state == ready {
		b.ready--
		return
	}
	b.later.remove(s.heapAt)
}

// release shows the notification to anybody again; its ack ID is void.
func (b *queue) release(at uint32) {
	b.takeOut(at)
	b.slot(at).generation++
	b.makeReady(at)
}

// postpone hides the notification until due; its ack ID stays good.
func (b *queue) postpone(at uint32, due time.Duration) {
	if s := b.slot(at); s.state == waiting {
		b.later.move(s.heapAt, due)
		return
	}
	b.takeOut(at)
	b.hide(at, due)
}

// wipe deletes all notifications.
func (b *queue) wipe() {
	b.fifo.clear()
	for at := range uint32(b.used) {
		if b.slot(at).state != free {
			b.drop(at)
		}
	}
}
