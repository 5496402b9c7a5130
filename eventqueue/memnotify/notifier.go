package memnotify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"eventsv2/eventqueue"
)

// DefaultLease is how long a pulled notification is kept from others when Config
// does not say; it is the ack deadline that the design asks of Pub/Sub.
const DefaultLease = 60 * time.Second

// Config sets the times of a Notifier. The zero value is ready for use.
type Config struct {
	// Lease is how long a pulled notification is kept from others: the ack
	// deadline. 0 means DefaultLease; a negative one is a programmer's error.
	Lease time.Duration

	// Unit is what the delay of Requeue is rounded up to. 0 means a nanosecond,
	// that is, not at all; time.Second is what Pub/Sub does. A negative one is a
	// programmer's error.
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
	broker  *broker
	waiters waiters
	stats   Stats
	faults  faults
}

// The interface that this package exists for.
var _ eventqueue.Notifier = (*Notifier)(nil)

// New makes an empty notifier. It panics when a time in config is negative.
func New(config Config) *Notifier {
	if config.Lease < 0 || config.Unit < 0 {
		panic(fmt.Sprintf("memnotify: Config.Lease is %v and Config.Unit is %v: neither may be negative", config.Lease, config.Unit))
	}
	return &Notifier{config: config.withDefaults(), start: time.Now(), broker: newBroker()}
}

// Publish queues the notifications; it does not block. It returns an error when
// ctx has ended, when a fault is injected, when there are more than
// eventqueue.MaxPublish of them, or when one names no event; then it has queued
// none, unless the fault says otherwise.
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
			n.broker.add(notification)
		}
	}
	n.stats.Published += int64(len(notifications))
	if n.broker.ready > 0 {
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

// Ack drops the deliveries for good; it does not block. One that was acknowledged
// before, or has been delivered again meanwhile, is passed over. It returns an
// error when ctx has ended, when a fault is injected, or when an ack ID was never
// made by a notifier of this package; then each delivery may come again.
func (n *Notifier) Ack(ctx context.Context, deliveries []eventqueue.Delivery) error {
	return n.settle(ctx, n.ackFault(), deliveries, func(ref leaseRef) {
		n.broker.drop(ref.slot)
		n.stats.Acked++
	})
}

// Requeue hides the deliveries until after has passed, rounded up to the unit of
// the notifier, and then shows them to anybody; a negative after means 0, which
// is at once. It does not block. It returns an error when after exceeds
// eventqueue.MaxRequeue, and otherwise as Ack does.
func (n *Notifier) Requeue(ctx context.Context, deliveries []eventqueue.Delivery, after time.Duration) error {
	if after > eventqueue.MaxRequeue {
		return fmt.Errorf("requeue %d notifications after %v: the longest delay is %v; acknowledge them and publish them again when they are due",
			len(deliveries), after, eventqueue.MaxRequeue)
	}
	wait := roundUp(after, n.config.Unit)
	return n.settle(ctx, n.requeueFault(), deliveries, func(ref leaseRef) {
		n.stats.Requeued++
		if wait <= 0 {
			n.broker.release(ref.slot)
			return
		}
		n.broker.postpone(ref.slot, n.now()+wait)
	})
}

// settle applies act to every delivery that is still the last one of its
// notification.
func (n *Notifier) settle(ctx context.Context, fault func() error, deliveries []eventqueue.Delivery, act func(leaseRef)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := fault(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	dueBefore := n.broker.nextDue()
	defer func() {
		if n.broker.ready > 0 || n.broker.nextDue() < dueBefore {
			n.waiters.wakeOne()
		}
	}()
	for i := range deliveries {
		ref, err := parseAckID(deliveries[i].AckID)
		if err != nil {
			return fmt.Errorf("settle delivery %d of %d: %w", i, len(deliveries), err)
		}
		if n.broker.holds(ref) {
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
	return n.broker.live()
}

// Ready is the number of notifications that a Pull could return now.
func (n *Notifier) Ready() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broker.promote(n.now())
	return n.broker.ready
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
