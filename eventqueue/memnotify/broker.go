package memnotify

import (
	"math"
	"time"

	"eventsv2/eventqueue"
)

// place says where a slot's notification is.
type place uint8

const (
	free    place = iota // the slot is empty
	ready                // in the ring: the next Pull gets it
	waiting              // in the heap: leased or delayed until its due
)

type slot struct {
	notification eventqueue.Notification
	generation   uint32
	place        place
	heapAt       int // valid while waiting
}

// never is the due of an empty heap.
const never = time.Duration(math.MaxInt64)

// broker is the queue without locks, clocks and waiting: every method is told
// what time it is, and its caller holds the lock.
type broker struct {
	pages []*[pageSlots]slot // in pages, so that none is moved when there are more
	used  int                // slots that there are
	empty []uint32           // slots that are free
	queue ring               // may hold stale references; see next
	ready int                // slots that are ready
	later timeHeap
}

// pageSlots is how many slots are made at once.
const pageSlots = 1024

func (b *broker) slot(at uint32) *slot { return &b.pages[at/pageSlots][at%pageSlots] }

func newBroker() *broker {
	b := &broker{}
	b.later.moved = func(slot uint32, at int) { b.slot(slot).heapAt = at }
	return b
}

func (b *broker) live() int { return b.ready + len(b.later.entries) }

func (b *broker) nextDue() time.Duration {
	if len(b.later.entries) == 0 {
		return never
	}
	return b.later.entries[0].due
}

func (b *broker) add(n eventqueue.Notification) {
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

func (b *broker) makeReady(at uint32) {
	s := b.slot(at)
	s.place = ready
	b.ready++
	b.queue.push(leaseRef{at, s.generation})
}

// promote makes ready what is due.
func (b *broker) promote(now time.Duration) {
	for b.nextDue() <= now {
		at := b.later.entries[0].slot
		b.later.remove(0)
		b.makeReady(at)
	}
}

// next leases the oldest ready notification until due. There must be one.
func (b *broker) next(due time.Duration) (eventqueue.Notification, leaseRef) {
	for {
		// A reference is stale when its notification was acknowledged or hidden
		// again by its last holder while it stood in the ring.
		ref := b.queue.pop()
		s := b.slot(ref.slot)
		if s.generation != ref.generation || s.place != ready {
			continue
		}
		b.ready--
		s.generation++
		b.hide(ref.slot, due)
		return s.notification, leaseRef{ref.slot, s.generation}
	}
}

func (b *broker) hide(at uint32, due time.Duration) {
	b.slot(at).place = waiting
	b.later.push(hidden{due, at})
}

// holds reports whether ref is the last delivery of a notification that is still
// here. That also holds for a short while after its lease has ended: until it is
// delivered again, its last holder may still acknowledge it.
func (b *broker) holds(ref leaseRef) bool {
	if int(ref.slot) >= b.used {
		return false
	}
	s := b.slot(ref.slot)
	return s.place != free && s.generation == ref.generation
}

// drop forgets the notification for good.
func (b *broker) drop(at uint32) {
	s := b.slot(at)
	b.takeOut(at)
	s.place = free
	s.generation++
	s.notification = eventqueue.Notification{}
	b.empty = append(b.empty, at)
}

// takeOut removes a notification from where it stands; a reference that stays
// behind in the ring is stale.
func (b *broker) takeOut(at uint32) {
	s := b.slot(at)
	if s.place == ready {
		b.ready--
		return
	}
	b.later.remove(s.heapAt)
}

// release shows the notification to anybody again; its ack ID is void.
func (b *broker) release(at uint32) {
	b.takeOut(at)
	b.slot(at).generation++
	b.makeReady(at)
}

// postpone hides the notification until due; its ack ID stays good.
func (b *broker) postpone(at uint32, due time.Duration) {
	if s := b.slot(at); s.place == waiting {
		b.later.move(s.heapAt, due)
		return
	}
	b.takeOut(at)
	b.hide(at, due)
}

// wipe forgets everything.
func (b *broker) wipe() {
	b.queue.clear()
	for at := range uint32(b.used) {
		if b.slot(at).place != free {
			b.drop(at)
		}
	}
}
