package notifytest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"eventsv2/eventqueue"
)

// The sizes of the concurrent mix are small enough for the fake server of the client
// library, which searches all messages for each pull.
const (
	mixPublishers    = 4
	mixBatches       = 10
	mixBatchSize     = 15
	mixPullers       = 4
	mixNotifications = mixPublishers * mixBatches * mixBatchSize
)

// mix counts the permitted deliveries of every event: one, and one more for each
// time that it was requeued.
type mix struct {
	*session
	stop     context.CancelFunc
	sentinel eventqueue.Notification // published last, and ends the mix

	mu      sync.Mutex
	allowed map[eventqueue.EventID]int // deliveries that may still come
	acked   int
}

func concurrentMix(s *session, ids *lastID) {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	m := &mix{session: s, stop: stop, sentinel: ids.notifications(1)[0], allowed: make(map[eventqueue.EventID]int)}

	var workers sync.WaitGroup
	for range mixPublishers {
		workers.Go(func() { m.publishBatches(ctx, ids) })
	}
	for range mixPullers {
		workers.Go(func() { m.pullUntilAcked(ctx) })
	}
	workers.Wait()

	if s.ctx.Err() != nil {
		s.t.Fatalf("%d of %d notifications were acknowledged within %v", m.acked, mixNotifications, s.MaxWait)
	}
}

func (m *mix) publishBatches(ctx context.Context, ids *lastID) {
	for range mixBatches {
		batch := ids.notifications(mixBatchSize)
		m.mu.Lock()
		for _, n := range batch {
			m.allowed[n.Event] = 1
		}
		m.mu.Unlock()
		if err := m.Notifier.Publish(ctx, batch); err != nil {
			m.fail("Publish = %v, want nil", err)
			return
		}
	}
}

func (m *mix) pullUntilAcked(ctx context.Context) {
	for ctx.Err() == nil {
		deliveries, err := m.Notifier.Pull(ctx, 1+rand.IntN(20))
		if err != nil && ctx.Err() == nil {
			m.fail("Pull = %v, want deliveries", err)
		}
		if err != nil {
			return
		}
		if len(deliveries) == 1 && deliveries[0].Event == m.sentinel.Event {
			m.send("Ack", 1, func() error { return m.Notifier.Ack(ctx, deliveries) })
			m.stop()
			return
		}
		m.acknowledgeOrRequeue(ctx, deliveries)
	}
}

// acknowledgeOrRequeue acknowledges two thirds at random, and requeues the rest.
func (m *mix) acknowledgeOrRequeue(ctx context.Context, deliveries []eventqueue.Delivery) {
	var done, atOnce, later []eventqueue.Delivery
	m.mu.Lock()
	for _, d := range deliveries {
		if m.allowed[d.Event] < 1 {
			m.mu.Unlock()
			m.fail("event %v was delivered without having been requeued", d.Event)
			return
		}
		m.allowed[d.Event]--
		switch rand.IntN(6) {
		case 0:
			atOnce = append(atOnce, d)
			m.allowed[d.Event]++
		case 1:
			later = append(later, d)
			m.allowed[d.Event]++
		default:
			done = append(done, d)
		}
	}
	m.mu.Unlock()
	m.send("Ack", len(done), func() error { return m.Notifier.Ack(ctx, done) })
	m.send("Requeue at once", len(atOnce), func() error { return m.Notifier.Requeue(ctx, atOnce, 0) })
	m.send("Requeue", len(later), func() error { return m.Notifier.Requeue(ctx, later, time.Nanosecond) })

	m.mu.Lock()
	m.acked += len(done)
	allAcked := len(done) > 0 && m.acked == mixNotifications
	m.mu.Unlock()
	if allAcked {
		// Nothing else is left: the sentinel is delivered alone, perhaps before this returns.
		unstopped := context.WithoutCancel(ctx)
		m.send("Publish", 1, func() error { return m.Notifier.Publish(unstopped, []eventqueue.Notification{m.sentinel}) })
	}
}

func (m *mix) send(what string, count int, call func() error) {
	if count == 0 {
		return
	}
	if err := call(); err != nil {
		m.fail("%s of %d notifications = %v, want nil", what, count, err)
	}
}

func (m *mix) fail(format string, args ...any) {
	m.t.Errorf(format, args...)
	m.stop()
}
