package memnotify

import (
	"context"
	"time"

	"eventsv2/eventqueue"
)

// puller is one call of Pull.
//
// The invariant: whenever the lock is free and there are waiters, either one of them
// has a token, or no notification is ready and one of them has a timer that ends no
// later than the next due. A call that breaks this wakes one waiter, which restores
// it: it takes the ready notifications and wakes the next waiter, or sets its timer.
type puller struct {
	n      *Notifier
	max    int
	waiter *waiter // nil until it has to wait

	faultsSeen int // the number of injections whose Pull fault was called
}

// take leases ready notifications, or joins the waiters and returns the next due.
func (p *puller) take() ([]eventqueue.Delivery, time.Duration) {
	n := p.n
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.queue.promote(now)
	if n.queue.ready == 0 {
		if p.waiter == nil {
			p.waiter = &waiter{wake: make(chan struct{}, 1)}
		}
		n.waiters.join(p.waiter)
		return nil, n.queue.nextDue()
	}
	dueBefore := n.queue.nextDue()
	deliveries := n.lease(min(p.max, n.queue.ready), now)
	// A puller that waited wakes the next waiter when it leaves.
	if p.waiter == nil && (n.queue.ready > 0 || n.queue.nextDue() < dueBefore) {
		n.waiters.wakeOne()
	}
	return deliveries, 0
}

// lease hands out the next count notifications, which must be ready.
func (n *Notifier) lease(count int, now time.Duration) []eventqueue.Delivery {
	deliveries := make([]eventqueue.Delivery, count)
	buffer := make([]byte, 0, count*ackIDLen)
	for i := range deliveries {
		notification, ref := n.queue.next(now + n.config.Lease)
		deliveries[i].Notification = notification
		buffer = ref.appendAckID(buffer)
	}
	// One string for all saves an allocation for each.
	ackIDs := string(buffer)
	for i := range deliveries {
		deliveries[i].AckID = ackIDs[i*ackIDLen : (i+1)*ackIDLen]
	}
	n.stats.Delivered += int64(count)
	return deliveries
}

// wait blocks until the puller is woken, the next due is reached, or ctx ends.
func (p *puller) wait(ctx context.Context, due time.Duration) {
	var dueReached <-chan time.Time
	if due != never {
		timer := time.NewTimer(due - p.n.now())
		defer timer.Stop()
		dueReached = timer.C
	}
	select {
	case <-ctx.Done():
	case <-p.waiter.wake:
	case <-dueReached:
	}
}

// leave ends the waiting and wakes another waiter, which takes over the waiting for
// ready and due notifications.
func (p *puller) leave() {
	if p.waiter == nil {
		return
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.n.waiters.leave(p.waiter)
	if p.n.queue.live() > 0 {
		p.n.waiters.wakeOne()
	}
}
