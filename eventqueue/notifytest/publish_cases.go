package notifytest

import (
	"slices"
	"testing"

	"eventsv2/eventqueue"
)

func ackedIsDeleted(s *session, ids *lastID) {
	want := ids.notifications(2)
	s.publish(want[0])
	got := s.await(want[0].Event)
	if got.Notification != want[0] {
		s.t.Errorf("pulled %+v, want %+v", got.Notification, want[0])
	}
	if got.AckID == "" {
		s.t.Error("the delivery has no ack ID")
	}
	s.ack(got)
	s.wantSentinelNext(want[1])
}

func fullBatch(s *session, ids *lastID) {
	want := ids.notifications(eventqueue.MaxPublish)
	s.publish(want...)
	deliveries := s.pullAll(len(want))
	wantSame(s.t, deliveries, want)
	s.ack(deliveries...)
	s.wantSentinelNext(ids.notifications(1)[0])
}

func overfullBatch(s *session, ids *lastID) {
	if err := s.Notifier.Publish(s.ctx, ids.notifications(eventqueue.MaxPublish+1)); err == nil {
		s.t.Errorf("Publish(%d notifications) = nil, want an error", eventqueue.MaxPublish+1)
	}
	s.wantSentinelNext(ids.notifications(1)[0])
}

func pullRespectsMax(s *session, ids *lastID) {
	want := ids.notifications(10)
	s.publish(want...)
	var all []eventqueue.Delivery
	for len(all) < len(want) {
		all = append(all, s.pull(3)...) // pull fails on more than 3
	}
	wantSame(s.t, all, want)
}

func pullOfNothing(s *session, _ *lastID) {
	for _, max := range []int{0, -1} {
		if _, err := s.Notifier.Pull(s.ctx, max); err == nil {
			s.t.Errorf("Pull(%d) = nil error, want one", max)
		}
	}
}

func traceparent(s *session, ids *lastID) {
	want := ids.notifications(2)
	want[0].Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	s.publish(want...)
	wantSame(s.t, s.pullAll(2), want)
}

func slicesNotRetained(s *session, ids *lastID) {
	want := ids.notifications(3)
	handed := slices.Clone(want)
	s.publish(handed...)
	if !slices.Equal(handed, want) {
		s.t.Error("Publish changed the slice that it was given")
	}
	clear(handed)
	deliveries := s.pullAll(3)
	wantSame(s.t, deliveries, want)

	passed := slices.Clone(deliveries)
	s.requeue(0, passed...)
	if !slices.Equal(passed, deliveries) {
		s.t.Error("Requeue changed the slice that it was given")
	}
	clear(passed)
	deliveries = s.pullAll(3)
	passed = slices.Clone(deliveries)
	s.ack(passed...)
	if !slices.Equal(passed, deliveries) {
		s.t.Error("Ack changed the slice that it was given")
	}
	clear(passed)
	s.wantSentinelNext(ids.notifications(1)[0])
}

// wantSame compares regardless of order, which no notifier guarantees.
func wantSame(t *testing.T, got []eventqueue.Delivery, want []eventqueue.Notification) {
	t.Helper()
	left := make(map[eventqueue.EventID]eventqueue.Notification, len(want))
	for _, n := range want {
		left[n.Event] = n
	}
	for _, d := range got {
		n, ok := left[d.Event]
		switch {
		case !ok:
			t.Errorf("event %v was delivered, which is not among those that are missing", d.Event)
		case n != d.Notification:
			t.Errorf("delivered %+v, want %+v", d.Notification, n)
		}
		delete(left, d.Event)
	}
	if len(left) > 0 {
		t.Errorf("%d of %d notifications were not delivered", len(left), len(want))
	}
}
