package notifytest

import (
	"time"

	"eventsv2/eventqueue"
)

func requeueAtOnce(s *session, ids *lastID) { requeuedNow(s, ids, 0) }

func requeuePast(s *session, ids *lastID) { requeuedNow(s, ids, -time.Hour) }

func requeuedNow(s *session, ids *lastID, after time.Duration) {
	want := ids.notifications(1)[0]
	s.publish(want)
	for range 3 {
		s.requeue(after, s.await(want.Event))
	}
	again := s.await(want.Event)
	if again.Notification != want {
		s.t.Errorf("delivered again as %+v, want %+v", again.Notification, want)
	}
	s.ack(again)
	s.wantSentinelNext(ids.notifications(1)[0])
}

func requeueDelayed(s *session, ids *lastID) {
	want := ids.notifications(1)[0]
	s.publish(want)
	first := s.await(want.Event)
	start := time.Now()
	s.requeue(2*s.Unit, first)
	again := s.await(want.Event)
	s.wantNotBefore(start, 2*s.Unit)
	s.ack(again)
	s.wantSentinelNext(ids.notifications(1)[0])
}

func requeueRoundsUp(s *session, ids *lastID) {
	want := ids.notifications(1)[0]
	s.publish(want)
	first := s.await(want.Event)
	start := time.Now()
	s.requeue(s.Unit+1, first)
	again := s.await(want.Event)
	if s.Unit > 1 {
		s.wantNotBefore(start, 2*s.Unit)
	}
	// One nanosecond is a delay, too: it must not become 0.
	start = time.Now()
	s.requeue(1, again)
	s.ack(s.await(want.Event))
	s.wantNotBefore(start, s.Unit)
}

func requeueTooLong(s *session, ids *lastID) {
	want := ids.notifications(1)[0]
	s.publish(want)
	delivery := s.await(want.Event)
	if err := s.Notifier.Requeue(s.ctx, []eventqueue.Delivery{delivery}, eventqueue.MaxRequeue+1); err == nil {
		s.t.Errorf("Requeue(%v) = nil, want an error", eventqueue.MaxRequeue+1)
	}
	s.requeue(eventqueue.MaxRequeue, delivery)
	s.ack(delivery)
	s.wantSentinelNext(ids.notifications(1)[0])
}

// requeueExtends sets a lease to end in one unit, extends it, and checks that the
// notification is delivered again only after the later end.
func requeueExtends(s *session, ids *lastID) {
	want := ids.notifications(2)
	s.publish(want[0])
	leased := s.await(want[0].Event)
	s.requeue(s.Unit, leased)
	start := time.Now()
	s.requeue(3*s.Unit, leased)
	s.wantSentinelNext(want[1])
	again := s.await(want[0].Event)
	s.wantNotBefore(start, 3*s.Unit)
	s.ack(again)
}

func leaseExpires(s *session, ids *lastID) {
	want := ids.notifications(3)
	s.publish(want...)
	leased := s.pullAll(3)
	start := time.Now()
	s.requeue(s.Unit, leased...) // the shortest possible lease
	again := s.pullAll(3)
	s.wantNotBefore(start, s.Unit)
	wantSame(s.t, again, want)
	s.ack(again...)
	s.wantSentinelNext(ids.notifications(1)[0])
}

func staleAck(s *session, ids *lastID) {
	want := ids.notifications(2)
	s.publish(want[0])
	first := s.await(want[0].Event)
	s.requeue(0, first)
	second := s.await(want[0].Event)
	// The first delivery is over. A notifier may still accept its ack, or not, so
	// that the second one is acknowledged as well.
	s.ack(first)
	s.ack(second, second)
	s.ack(second)
	s.requeue(0, second)
	s.requeue(s.Unit, first)
	s.wantSentinelNext(want[1])
}

func emptyCalls(s *session, _ *lastID) {
	s.ack()
	s.requeue(0)
	s.requeue(s.Unit)
}
