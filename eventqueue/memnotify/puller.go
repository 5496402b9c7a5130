package memnotify

import (
	"context"
	"time"

	"eventsv2/eventqueue"
)

// puller is one call of Pull.
//
// Whenever the lock is free and there is a waiter, then either one of them holds
// a token, or nothing is ready and one of them has a timer that ends no later
// than the next due. Everybody who breaks that wakes one waiter, and that one
// restores it: it takes what is ready and wakes the next, or sets its timer.
type puller struct {
	n      *Notifier
	max    int
	waiter *waiter // nil until it has to wait

	faultsSeen int // the injections whose Pull fault was asked
}

// take leases what is ready, or joins the waiters and returns the next due.
func (p *puller) take() ([]eventqueue.Delivery, time.Duration) {
	n := p.n
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.now()
	n.broker.promote(now)
	if n.broker.ready == 0 {
		if p.waiter == nil {
			p.waiter = &waiter{wake: make(chan struct{}, 1)}
		}
		n.waiters.join(p.waiter)
		return nil, n.broker.nextDue()
	}
	dueBefore := n.broker.nextDue()
	deliveries := n.lease(min(p.max, n.broker.ready), now)
	// A puller that waited passes the watch on when it leaves.
	if p.waiter == nil && (n.broker.ready > 0 || n.broker.nextDue() < dueBefore) {
		n.waiters.wakeOne()
	}
	return deliveries, 0
}

// lease hands out the next count notifications, which must be ready.
func (n *Notifier) lease(count int, now time.Duration) []eventqueue.Delivery {
	deliveries := make([]eventqueue.Delivery, count)
	buffer := make([]byte, 0, count*ackIDLen)
	for i := range deliveries {
		notification, ref := n.broker.next(now + n.config.Lease)
		deliveries[i].Notification = notification
		buffer = ref.appendAckID(buffer)
	}
	// One string for all spares an allocation for each.
	ackIDs := string(buffer)
	for i := range deliveries {
		deliveries[i].AckID = ackIDs[i*ackIDLen : (i+1)*ackIDLen]
	}
	n.stats.Delivered += int64(count)
	return deliveries
}

// wait blocks until the puller is woken, the next due has come, or ctx ends.
func (p *puller) wait(ctx context.Context, due time.Duration) {
	var dueCome <-chan time.Time
	if due != never {
		timer := time.NewTimer(due - p.n.now())
		defer timer.Stop()
		dueCome = timer.C
	}
	select {
	case <-ctx.Done():
	case <-p.waiter.wake:
	case <-dueCome:
	}
}

// leave ends the waiting and passes the watch over ready and due notifications
// on to another waiter.
func (p *puller) leave() {
	if p.waiter == nil {
		return
	}
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.n.waiters.leave(p.waiter)
	if p.n.broker.live() > 0 {
		p.n.waiters.wakeOne()
	}
}
