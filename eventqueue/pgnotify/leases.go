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

// lease is a notification that only this process has, in its memory, until due.
type lease struct {
	serial       uint64
	notification eventqueue.Notification
	due          time.Time
	at           int // index in the heap; -1 when it is not leased any more
}

// leases are the notifications that were taken out of the table: those that were
// handed out, and those that are ready for the next pull. The returner removes
// those that are due.
type leases struct {
	// sooner wakes the returner when a lease ends before the time it waits for.
	sooner chan struct{}

	mu       sync.Mutex
	bySerial map[uint64]*lease // handed out
	queue    leaseHeap         // all leases
	ready    []*lease          // in order; returned ones have left the heap
	last     uint64            // the last serial given
	awaited  time.Time         // the time the returner waits for; zero when it does not wait
}

// newLeases begins the serials at a random number, so that the ack IDs of another
// notifier are unknown here.
func newLeases() *leases {
	return &leases{sooner: make(chan struct{}, 1), bySerial: map[uint64]*lease{}, last: rand.Uint64()}
}

// add makes notifications ready. Those still ready at due return to the table.
func (l *leases) add(notifications []eventqueue.Notification, due time.Time) {
	added := make([]lease, len(notifications)) // one allocation for all
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range added {
		added[i] = lease{notification: notifications[i], due: due}
		heap.Push(&l.queue, &added[i])
		l.ready = append(l.ready, &added[i])
	}
	l.wakeReturner()
}

// handOut leases at most count of the ready notifications until due.
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

// passReturned drops the returned notifications from the front of ready.
func (l *leases) passReturned() {
	for len(l.ready) > 0 && l.ready[0].at < 0 {
		l.ready = l.ready[1:]
	}
}

// readyCount is how many are ready. It may count some that were returned meanwhile.
func (l *leases) readyCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passReturned()
	return len(l.ready)
}

// returnReady makes all ready notifications due now, so that they return to the table.
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
	l.wakeReturner()
}

// drop ends leases for good. It ignores a lease that has ended already.
func (l *leases) drop(deliveries []eventqueue.Delivery) error {
	return l.each(deliveries, l.remove)
}

// move changes the end of leases. It ignores a lease that has ended already.
func (l *leases) move(deliveries []eventqueue.Delivery, due time.Time) error {
	return l.each(deliveries, func(x *lease) {
		x.due = due
		heap.Fix(&l.queue, x.at)
	})
}

func (l *leases) each(deliveries []eventqueue.Delivery, act func(*lease)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.wakeReturner()
	for i := range deliveries {
		serial, err := parseAckID(deliveries[i].AckID)
		if err != nil {
			return fmt.Errorf("find the lease of delivery %d of %d: %w", i, len(deliveries), err)
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

// wakeReturner wakes the returner if the first lease ends before the time it waits for.
func (l *leases) wakeReturner() {
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

// takeDue removes at most limit leases that have ended. If there are none it returns
// the time of the next call, and relies on the returner to wait until then.
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

// takeAll removes all leases and returns their notifications.
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

// ackIDs makes the ack IDs of consecutive serials as one string, which saves an
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
