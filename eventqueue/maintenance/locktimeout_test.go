package maintenance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
	"eventsv2/eventqueue/memnotify"
)

// settled is a store without events, whose lock timeout an operator changes. It counts the pages
// that the relay reads.
type settled struct {
	behind
	timeout, pages atomic.Int64
}

func (s *settled) Sweep(context.Context, eventqueue.EventID, int, time.Duration) (maintenance.Swept, error) {
	s.pages.Add(1)
	return maintenance.Swept{LockTimeout: time.Duration(s.timeout.Load())}, nil
}

func (*settled) TakeRound(context.Context, maintenance.RoundPlace, time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	return nil, next, nil
}

// TestRunningRelayAppliesAChangedLockTimeout (I13): while there is no event it rests for as long as no claim can have
// expired, by the lock timeout that counts now and not by the one that it found at its start.
func TestRunningRelayAppliesAChangedLockTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &settled{}
		s.timeout.Store(int64(4 * time.Hour))
		relay, err := maintenance.NewRelay(s, memnotify.New(memnotify.Config{}), maintenance.RelayConfig{LostAfter: 4 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		for _, c := range []struct {
			timeout     time.Duration
			least, most int64 // pages in a day: a rest is about four fifths of the time
		}{{4 * time.Hour, 6, 10}, {time.Hour, 24, 40}, {4 * time.Hour, 6, 10}} {
			s.timeout.Store(int64(c.timeout))
			time.Sleep(4 * time.Hour) // the rest that has begun, after which it reads the change
			before := s.pages.Load()
			time.Sleep(24 * time.Hour)
			if n := s.pages.Load() - before; n < c.least || n > c.most {
				t.Errorf("with a lock timeout of %s the relay reads %d pages in a day without an event, want %d to %d", c.timeout, n, c.least, c.most)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
