package protocol

import (
	"testing"
	"time"

	"eventsv2/eventqueue"
)

// TestANotifierThatIsBackIsNoticed (I2) by the emits that it made nobody wait for.
func TestANotifierThatIsBackIsNoticed(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		l := newLedger(0, 0)
		q, err := eventqueue.New(l, l, eventqueue.QueueConfig{PublishRest: 5 * time.Second})
		if err != nil {
			s.t.Fatal(err)
		}
		emit := func() eventqueue.EventID {
			id, err := q.Emit(s.t.Context(), event())
			if err != nil {
				s.t.Error(err)
			}
			pass(time.Minute)
			return id
		}
		l.failing = true
		if id := emit(); !l.pending[id] {
			s.t.Error("a notification that was not published is not pending")
		}
		l.failing = false
		emit() // pending as well, and tried
		if id := emit(); l.published[id] != 1 || l.pending[id] {
			s.t.Errorf("published %d times after the notifier came back, pending: %v; want once, and never pending", l.published[id], l.pending[id])
		}
	})
}

// TestANotifierThatHangsHoldsUpNoEmit (I12), not beyond the time for one request.
func TestANotifierThatHangsHoldsUpNoEmit(t *testing.T) {
	t.Parallel()
	inVirtualTime(t, func(s *script) {
		l := newLedger(0, 0)
		l.hang = make(chan struct{})
		q, err := eventqueue.New(l, l, eventqueue.QueueConfig{PublishTimeout: 2 * time.Second})
		if err != nil {
			s.t.Fatal(err)
		}
		emitted := make(chan error, 1)
		go func() {
			_, err := q.Emit(s.t.Context(), event())
			emitted <- err
		}()
		pass(time.Minute)
		if len(emitted) == 0 {
			s.t.Error("the emit waits for the notifier")
		}
		close(l.hang)
		if err := <-emitted; err != nil {
			s.t.Error(err)
		}
	})
}
