package memnotify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"eventsv2/eventqueue"
)

// DefaultLease is the Config.Lease that is used for 0. It is the ack deadline that
// Pub/Sub subscriptions of a queue should have.
const DefaultLease = 60 * time.Second

// Config sets the times of a Notifier. The zero value is ready for use.
type Config struct {
	// Lease is how long a pulled notification is hidden from other pulls: the ack
	// deadline. 0 means DefaultLease. New panics if it is negative.
	Lease time.Duration

	// Unit is the duration to a multiple of which the delay of Requeue is rounded
	// up. 0 means a nanosecond, that is, no rounding; Pub/Sub rounds to time.Second.
	// New panics if it is negative.
	Unit time.Duration
}

func (c Config) withDefaults() Config {
	if c.Lease == 0 {
		c.Lease = DefaultLease
	}
	if c.Unit == 0 {
		c.Unit = time.Nanosecond
	}
	return c
}

// Stats counts what a Notifier has done since it was made.
type Stats struct {
	Published int64 // notifications accepted, the dropped and the doubled ones as one each
	Delivered int64 // deliveries handed out by Pull
	Acked     int64 // notifications dropped for good by Ack
	Requeued  int64 // leases moved by Requeue
}

// Notifier is an eventqueue.Notifier within the process. All methods are safe
// for concurrent use. It needs no closing.
type Notifier struct {
	config Config
	start  time.Time

	mu      sync.Mutex
	queue   *queue
	waiters waiters
	stats   Stats
	faults  faults
}

var _ eventqueue.Notifier = (*Notifier)(nil)

// New makes an empty notifier. It panics when a time in config is negative.
func New(config Config) *Notifier {
	if config.Lease < 0 || config.Unit < 0 {
		panic(fmt.Sprintf("memnotify: Config.Lease is %v and Config.Unit is %v: neither may be negative", config.Lease, config.Unit))
	}
	return &Notifier{config: config.withDefaults(), start: time.Now(), queue: newQueue()}
}

// Publish queues the notifications; it does not block. It returns an error when
// ctx has ended, when a fault is injected, when there are more than
// eventqueue.MaxPublish of them, or when an event id is not positive. Then it has
// queued none of them, except for a fault of AfterPublish.
func (n *Notifier) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if count := len(notifications); count > eventqueue.MaxPublish {
		return fmt.Errorf("publish %d notifications: the limit is %d in one call; split them", count, eventqueue.MaxPublish)
	}
	for i, notification := range notifications {
		if notification.Event <= 0 {
			return fmt.Errorf("publish notification %d of %d: event id %d is not positive; pass the id that the database gave",
				i, len(notifications), notification.Event)
		}
	}
	before, after := n.publishFaults()
	if err := before(); err != nil {
		return err
	}
	n.enqueue(notifications)
	return after()
}

func (n *Notifier) enqueue(notifications []eventqueue.Notification) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, notification := range notifications {
		for range n.faults.copies() {
			n.queue.add(notification)
		}
	}
	n.stats.Published += int64(len(notifications))
	if n.queue.ready > 0 {
		n.waiters.wakeOne()
	}
}

// Pull blocks until it can return 1 to max notifications, leased to the caller,
// or until ctx ends; then it returns the error of ctx. It also returns an error
// when max is less than 1 or a fault is injected.
func (n *Notifier) Pull(ctx context.Context, max int) ([]eventqueue.Delivery, error) {
	if max < 1 {
		return nil, fmt.Errorf("pull at most %d notifications: ask for at least 1", max)
	}
	p := puller{n: n, max: max}
	defer p.leave()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := p.checkFault(); err != nil {
			return nil, err
		}
		deliveries, due := p.take()
		if len(deliveries) > 0 {
			return deliveries, nil
		}
		p.wait(ctx, due)
	}
}

// Ack drops the deliveries for good; it does not block. It ignores a delivery that
// was acknowledged before, or was delivered again meanwhile. It returns an error
// when ctx has ended, when a fault is injected, or when an ack ID was not made by a
// notifier of this package; then each notification may be delivered again.
func (n *Notifier) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return n.apply(ctx, n.ackFault(), deliveries, func(ref leaseRef) {
		n.queue.drop(ref.slot)
		n.stats.Acked++
	})
}

// Requeue hides the deliveries until after has passed, rounded up to the unit of
// the notifier; then any pull may get them. A negative after means 0, which is at
// once. It does not block. It returns an error when after exceeds
// eventqueue.MaxRequeue, and otherwise as Ack does.
func (n *Notifier) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if after > eventqueue.MaxRequeue {
		return fmt.Errorf("requeue %d notifications after %v: the longest delay is %v; acknowledge them and publish them again when they are due",
			len(deliveries), after, eventqueue.MaxRequeue)
	}
	wait := roundUp(after, n.config.Unit)
	return n.apply(ctx, n.requeueFault(), deliveries, func(ref leaseRef) {
		n.stats.Requeued++
		if wait <= 0 {
			n.queue.release(ref.slot)
			return
		}
		n.queue.postpone(ref.slot, n.now()+wait)
	})
}

// apply calls act for every delivery that is still the last one of its
// notification.
func (n *Notifier) apply(ctx context.Context, fault func() error, deliveries []eventqueue.Delivery, act func(leaseRef)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := fault(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	dueBefore := n.queue.nextDue()
	defer func() {
		if n.queue.ready > 0 || n.queue.nextDue() < dueBefore {
			n.waiters.wakeOne()
		}
	}()
	for i := range deliveries {
		ref, err := parseAckID(deliveries[i].AckID)
		if err != nil {
			return fmt.Errorf("find the lease of delivery %d of %d: %w", i, len(deliveries), err)
		}
		if n.queue.isCurrent(ref) {
			act(ref)
		}
	}
	return nil
}

// Len is the number of notifications that are not acknowledged: ready, leased or
// delayed.
func (n *Notifier) Len() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.queue.live()
}

// Ready is the number of notifications that a Pull could return now.
func (n *Notifier) Ready() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue.promote(n.now())
	return n.queue.ready
}

// Next is how long it takes until a Pull can return something without a Publish
// or requeues anything; ok is false when that is never.
func (n *Notifier) Next() (wait time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.queue.promote(n.now())
	if n.queue.ready > 0 {
		return 0, true
	}
	due := n.queue.nextDue()
	return due - n.now(), due != never
}

// Stats returns the counts so far.
func (n *Notifier) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// now is the time since the notifier was made; it never goes back.
func (n *Notifier) now() time.Duration { return time.Since(n.start) }

// roundUp returns the least multiple of unit that is not less than d.
func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		return d - rest + unit
	}
	return d
}
