package pgnotify

import (
	"container/heap"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"eventsv2/eventqueue"
)

// lease is a notification that is in the memory of this process only, until due.
type lease struct {
	serial       uint64
	notification eventqueue.Notification
	due          time.Time
	at           int // its place in the heap; -1 when it is not leased any more
}

// leases are the notifications that were taken out of the table: those that were
// handed out, and those that are ready for the next pull. The keeper takes out
// what is due.
type leases struct {
	// sooner tells the keeper that a lease ends before the time it waits for.
	sooner chan struct{}

	mu       sync.Mutex
	bySerial map[uint64]*lease // what was handed out
	queue    leaseHeap         // everything
	ready    []*lease          // in order; those that went back have left the heap
	last     uint64            // serial given
	awaited  time.Time         // what the keeper waits for; the zero time when it does not wait
}

// newLeases begins the serials anywhere, so that the ack IDs of another notifier
// mean nothing here.
func newLeases() *leases {
	return &leases{sooner: make(chan struct{}, 1), bySerial: map[uint64]*lease{}, last: rand.Uint64()}
}

// add makes notifications ready until due, when they go back.
func (l *leases) add(notifications []eventqueue.Notification, due time.Time) {
	added := make([]lease, len(notifications)) // one allocation for all
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range added {
		added[i] = lease{notification: notifications[i], due: due}
		heap.Push(&l.queue, &added[i])
		l.ready = append(l.ready, &added[i])
	}
	l.tellKeeper()
}

// handOut leases at most count of what is ready until due.
func (l *leases) handOut(count int, due time.Time) []eventqueue.Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passReturned()
	if len(l.ready) == 0 {
		return nil
	}
	deliveries := make([]eventqueue.Delivery, 0, min(count, len(l.ready)))
	first := l.last + 1
	for len(deliveries) < count && len(l.ready) > 0 {
		x := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if x.at >= 0 {
			l.last++
			x.serial, x.due = l.last, due
			l.bySerial[x.serial] = x
			heap.Fix(&l.queue, x.at)
			deliveries = append(deliveries, eventqueue.Delivery{Notification: x.notification})
		}
	}
	ids := ackIDs(first, len(deliveries))
	for i := range deliveries {
		deliveries[i].AckID = ids[i*ackIDLen : (i+1)*ackIDLen]
	}
	return deliveries
}

// passReturned drops what has gone back from the front of what is ready.
func (l *leases) passReturned() {
	for len(l.ready) > 0 && l.ready[0].at < 0 {
		l.ready = l.ready[1:]
	}
}

// readyCount is how many are ready, give or take those that go back meanwhile.
func (l *leases) readyCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passReturned()
	return len(l.ready)
}

// returnReady has what is ready go back at once.
func (l *leases) returnReady() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.ready {
		if x.at >= 0 {
			x.due = now
			heap.Fix(&l.queue, x.at)
		}
	}
	l.ready = nil
	l.tellKeeper()
}

// drop ends leases for good. One that is not here any more is passed over.
func (l *leases) drop(deliveries []eventqueue.Delivery) error {
	return l.each(deliveries, l.remove)
}

// move ends leases at another time. One that is not here any more is passed over.
func (l *leases) move(deliveries []eventqueue.Delivery, due time.Time) error {
	return l.each(deliveries, func(x *lease) {
		x.due = due
		heap.Fix(&l.queue, x.at)
	})
}

func (l *leases) each(deliveries []eventqueue.Delivery, act func(*lease)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.tellKeeper()
	for i := range deliveries {
		serial, err := parseAckID(deliveries[i].AckID)
		if err != nil {
			return fmt.Errorf("settle delivery %d of %d: %w", i, len(deliveries), err)
		}
		if x, ok := l.bySerial[serial]; ok {
			act(x)
		}
	}
	return nil
}

func (l *leases) remove(x *lease) {
	delete(l.bySerial, x.serial)
	heap.Remove(&l.queue, x.at)
}

// tellKeeper wakes the keeper if the first lease ends before it would wake.
func (l *leases) tellKeeper() {
	if len(l.queue) == 0 || l.awaited.IsZero() || !l.queue[0].due.Before(l.awaited) {
		return
	}
	select {
	case l.sooner <- struct{}{}:
	default:
	}
}

// forever is longer than any lease.
const forever = 24 * time.Hour

// takeDue takes out at most limit leases that have ended. When there are none it
// returns when to come again, and counts on the keeper's waiting until then.
func (l *leases) takeDue(now time.Time, limit int) (due []eventqueue.Notification, again time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(due) < limit && len(l.queue) > 0 && !l.queue[0].due.After(now) {
		due = append(due, l.queue[0].notification)
		l.remove(l.queue[0])
	}
	l.awaited = time.Time{}
	if len(due) == 0 {
		l.awaited = now.Add(forever)
		if len(l.queue) > 0 {
			l.awaited = l.queue[0].due
		}
	}
	return due, l.awaited
}

// takeAll takes out everything.
func (l *leases) takeAll() []eventqueue.Notification {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]eventqueue.Notification, 0, len(l.queue))
	for _, x := range l.queue {
		all = append(all, x.notification)
	}
	clear(l.bySerial)
	l.queue, l.ready = nil, nil
	return all
}

// leaseHeap has the lease that ends first at its top. It implements
// heap.Interface.
type leaseHeap []*lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *leaseHeap) Push(x any) {
	added := x.(*lease)
	added.at = len(*h)
	*h = append(*h, added)
}

func (h *leaseHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	x.at = -1
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

// ackIDLen is the length of an ack ID: the serial in hexadecimal.
const ackIDLen = 16

// ackIDs makes the ack IDs of consecutive serials, as one string: that spares an
// allocation for each.
func ackIDs(first uint64, count int) string {
	b := make([]byte, 0, count*ackIDLen)
	for i := range uint64(count) {
		s := first + i
		b = hex.AppendEncode(b, []byte{byte(s >> 56), byte(s >> 48), byte(s >> 40), byte(s >> 32),
			byte(s >> 24), byte(s >> 16), byte(s >> 8), byte(s)})
	}
	return string(b)
}

func parseAckID(s string) (uint64, error) {
	if len(s) == ackIDLen {
		if serial, err := strconv.ParseUint(s, 16, 64); err == nil {
			return serial, nil
		}
	}
	return 0, fmt.Errorf("ack ID %q was never made by this notifier: pass deliveries on as Pull returned them", s)
}
