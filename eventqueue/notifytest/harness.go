package notifytest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"eventsv2/eventqueue"
)

// Harness is one empty notifier under test, with its properties.
type Harness struct {
	// Notifier is empty, and only the suite uses it. The function that opened it
	// closes it with t.Cleanup.
	Notifier eventqueue.Notifier

	// ShortLeased opens another empty notifier, whose leases are as short as its
	// server allows. One case needs it: it waits for the end of the lease of a
	// cancelled Pull, which cannot be ended early. Nil means that the case uses
	// Notifier, and may wait for a whole lease of it.
	ShortLeased func(t *testing.T) eventqueue.Notifier

	// Unit is the duration to a multiple of which delays are rounded up; the suite
	// requeues by one to three units. 0 means a second, as with Pub/Sub.
	Unit time.Duration

	// ClockError is by how much a delay may seem too short because the notifier's
	// server measures it with another or a coarser clock. 0 means not at all.
	ClockError time.Duration

	// MaxWait is how long a case may take. It has to exceed twice the lease of the
	// notifier. 0 means three minutes.
	MaxWait time.Duration
}

func (h Harness) withDefaults() Harness {
	if h.Unit == 0 {
		h.Unit = time.Second
	}
	if h.MaxWait == 0 {
		h.MaxWait = 3 * time.Minute
	}
	return h
}

// session is one running case: a harness with the context of its time limit.
type session struct {
	Harness
	t   *testing.T
	ctx context.Context //nolint:containedctx // a session is one case and ends with its context
}

func newSession(t *testing.T, h Harness) *session {
	h = h.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), h.MaxWait)
	t.Cleanup(cancel)
	return &session{Harness: h, t: t, ctx: ctx}
}

// lastID makes the event ids of all cases distinct, so that a case that gets the
// notification of another fails.
type lastID struct{ atomic.Int64 }

func (l *lastID) notifications(count int) []eventqueue.Notification {
	first := l.Add(int64(count)) - int64(count) + 1
	made := make([]eventqueue.Notification, count)
	for i := range made {
		id := first + int64(i)
		made[i] = eventqueue.Notification{
			Event:  eventqueue.EventID(id),
			Canvas: eventqueue.CanvasID{0: 0xca, 14: byte(id >> 8), 15: byte(id)},
		}
	}
	return made
}

func (s *session) publish(notifications ...eventqueue.Notification) {
	s.t.Helper()
	if err := s.Notifier.Publish(s.ctx, notifications); err != nil {
		s.t.Fatalf("Publish(%d notifications) = %v, want nil", len(notifications), err)
	}
}

// pull waits for at least one notification, however often the notifier returns
// none.
func (s *session) pull(max int) []eventqueue.Delivery {
	s.t.Helper()
	for {
		deliveries, err := s.Notifier.Pull(s.ctx, max)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && s.ctx.Err() != nil:
			s.t.Fatalf("nothing was delivered within %v", s.MaxWait)
		case err != nil:
			s.t.Fatalf("Pull(%d) = %v, want deliveries", max, err)
		case len(deliveries) > max:
			s.t.Fatalf("Pull(%d) returned %d deliveries, which is more than it may", max, len(deliveries))
		case len(deliveries) > 0:
			return deliveries
		}
	}
}

// pullAll pulls until it has count deliveries, and fails on a repeated one.
func (s *session) pullAll(count int) []eventqueue.Delivery {
	s.t.Helper()
	seen := make(map[eventqueue.EventID]bool, count)
	all := make([]eventqueue.Delivery, 0, count)
	for len(all) < count {
		for _, delivery := range s.pull(count - len(all)) {
			if seen[delivery.Event] {
				s.t.Fatalf("event %v was delivered twice though its lease had not ended", delivery.Event)
			}
			seen[delivery.Event] = true
			all = append(all, delivery)
		}
	}
	return all
}

func (s *session) ack(deliveries ...eventqueue.Delivery) {
	s.t.Helper()
	if err := s.Notifier.Ack(s.ctx, deliveries); err != nil {
		s.t.Fatalf("Ack(%d deliveries) = %v, want nil", len(deliveries), err)
	}
}

func (s *session) requeue(after time.Duration, deliveries ...eventqueue.Delivery) {
	s.t.Helper()
	if err := s.Notifier.Requeue(s.ctx, deliveries, after); err != nil {
		s.t.Fatalf("Requeue(%d deliveries, %v) = %v, want nil", len(deliveries), after, err)
	}
}

// await pulls until the event comes, and acknowledges nothing. Any other event is
// an error.
func (s *session) await(event eventqueue.EventID) eventqueue.Delivery {
	s.t.Helper()
	deliveries := s.pull(1)
	if got := deliveries[0].Event; got != event {
		s.t.Fatalf("event %v was delivered while waiting for %v", got, event)
	}
	return deliveries[0]
}

// wantNotBefore fails when less than the delay has passed since start.
func (s *session) wantNotBefore(start time.Time, delay time.Duration) {
	s.t.Helper()
	if passed := time.Since(start); passed+s.ClockError < delay {
		s.t.Errorf("it was delivered again after %v, want not before %v had passed", passed, delay)
	}
}

// wantSentinelNext publishes one more notification and fails unless it is the next and
// only one delivered: acknowledged notifications must not be delivered.
func (s *session) wantSentinelNext(sentinel eventqueue.Notification) {
	s.t.Helper()
	s.publish(sentinel)
	s.ack(s.await(sentinel.Event))
}
