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
	"eventsv2/eventqueue/memstore"
)

// settled is a store whose lock timeout an operator changes. It records the one that the
// relay uses.
type settled struct {
	*memstore.Store
	timeout, used atomic.Int64
}

func (s *settled) LockTimeout(context.Context) (time.Duration, bool, error) {
	return time.Duration(s.timeout.Load()), true, nil
}

func (s *settled) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter, lockTimeout time.Duration) (maintenance.Swept, error) {
	s.used.Store(int64(lockTimeout))
	return s.Store.Sweep(ctx, after, limit, lostAfter, lockTimeout)
}

// TestARunningRelayHeedsAChange: not only the lock timeout that it found at its start.
func TestARunningRelayHeedsAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &settled{Store: memstore.New(memstore.Config{})}
		relay, err := maintenance.NewRelay(s, memnotify.New(memnotify.Config{}), maintenance.RelayConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- relay.Run(ctx) }()
		for _, timeout := range []time.Duration{10 * time.Minute, 30 * time.Second} {
			s.timeout.Store(int64(timeout))
			time.Sleep(2 * time.Minute)
			if used := time.Duration(s.used.Load()); used != timeout {
				t.Errorf("the relay uses %s, the database %s", used, timeout)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
