package maintenance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// behind is a store in which a canvas has lost the notifications of many ordering groups,
// so that a relay at 500 per second publishes them for 20 s. One event of another canvas
// is lost as well, since lostAt.
type behind struct {
	lostAt time.Time
	taken  bool
}

var (
	crowded = eventqueue.CanvasID{1}
	beside  = eventqueue.CanvasID{2}
)

const crowdPages = 40

func (s *behind) TakeRound(_ context.Context, after maintenance.RoundPlace, _, _ time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	switch after.Stage {
	case maintenance.RoundOfHandlers:
		if !s.taken && !time.Now().Before(s.lostAt) {
			s.taken = true
			lost = []eventqueue.Notification{{Event: 1, Canvas: beside}}
		}
		return lost, maintenance.RoundPlace{Stage: maintenance.RoundOfGroups}, nil
	case maintenance.RoundOfGroups:
		for range 256 {
			lost = append(lost, eventqueue.Notification{Event: after.Run + 2, Canvas: crowded})
		}
		if after.Run == crowdPages {
			return lost, maintenance.RoundPlace{Stage: maintenance.RoundOfRuns}, nil
		}
		after.Run++
		return lost, after, nil
	default:
		return nil, maintenance.RoundPlace{}, nil
	}
}

func (s *behind) MarkPending(context.Context, []eventqueue.EventID) error { return nil }
func (s *behind) TakePending(context.Context, []eventqueue.EventID) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (s *behind) TakeDue(context.Context, time.Duration, int) ([]eventqueue.Notification, error) {
	return nil, nil
}

func (s *behind) Sweep(context.Context, eventqueue.EventID, int, time.Duration, time.Duration) (maintenance.Swept, error) {
	return maintenance.Swept{Read: 1}, nil
}

func (s *behind) Listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// publishedAt sends when an event of the canvas beside is published.
type publishedAt chan time.Time

func (p publishedAt) Publish(_ context.Context, notifications []eventqueue.Notification) error {
	for _, n := range notifications {
		if n.Canvas == beside {
			p <- time.Now()
		}
	}
	return nil
}

// TestLostGroupsDelayNoOtherEvent (I20): while a slow relay publishes the lost
// notifications of another canvas' ordering groups, which takes 20 s each time, an event
// is notified within 5 s of being lost, and a moment for what is published just then.
func TestLostGroupsDelayNoOtherEvent(t *testing.T) {
	t.Parallel()
	for _, into := range []time.Duration{0, 7, 11, 16, 23, 31} { // seconds into the rounds
		synctest.Test(t, func(t *testing.T) {
			store := &behind{lostAt: time.Now().Add(into * time.Second)}
			published := make(publishedAt, 1)
			relay, err := maintenance.NewRelay(store, published, maintenance.RelayConfig{PerSecond: 500})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- relay.Run(ctx) }()
			select {
			case at := <-published:
				if after := at.Sub(store.lostAt); after > 7*time.Second {
					t.Errorf("lost %d s into the rounds, it was notified after %s", into, after)
				}
			case <-time.After(10 * time.Minute):
				t.Errorf("lost %d s into the rounds, it was never notified", into)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// empty is a store without events until emittedAt. One is emitted then, whose notification is
// lost, and seems lost from lostAt on.
type empty struct {
	behind
	emittedAt, lostAt time.Time
	asked             atomic.Int64
	published         bool
}

func (s *empty) TakeRound(_ context.Context, after maintenance.RoundPlace, _, _ time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	s.asked.Add(2) // the settings are a statement of their own
	if after.Stage == maintenance.RoundOfHandlers && !s.published && !time.Now().Before(s.lostAt) {
		s.published = true
		lost = []eventqueue.Notification{{Event: 1, Canvas: beside}}
	}
	return lost, maintenance.RoundPlace{}, nil
}

func (s *empty) Sweep(context.Context, eventqueue.EventID, int, time.Duration, time.Duration) (swept maintenance.Swept, err error) {
	s.asked.Add(1)
	if !time.Now().Before(s.emittedAt) {
		swept.Read = 1
	}
	return swept, nil
}

func (s *empty) TakeDue(context.Context, time.Duration, int) ([]eventqueue.Notification, error) {
	s.asked.Add(1)
	return nil, nil
}

func (s *empty) LockTimeout(context.Context) (time.Duration, bool, error) {
	s.asked.Add(1)
	return time.Minute, true, nil
}

// TestARelayWithoutEventsSendsFewStatements (I12), and yet notices what is lost as soon as one
// beside many events does.
func TestARelayWithoutEventsSendsFewStatements(t *testing.T) {
	t.Parallel()
	const idle = 20                                                  // minutes
	for _, into := range []time.Duration{1, 4, 11, 20, 26, 31, 47} { // seconds after that
		synctest.Test(t, func(t *testing.T) {
			emittedAt := time.Now().Add(idle*time.Minute + into*time.Second)
			store := &empty{emittedAt: emittedAt, lostAt: emittedAt.Add(time.Minute)}
			published := make(publishedAt, 1)
			relay, err := maintenance.NewRelay(store, published, maintenance.RelayConfig{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- relay.Run(ctx) }()
			<-time.After(time.Minute)
			atStart := store.asked.Load()
			<-time.After((idle - 1) * time.Minute)
			if perMinute := float64(store.asked.Load()-atStart) / (idle - 1); perMinute > 6 {
				t.Errorf("without an event the relay sends %.1f statements a minute, want at most 6", perMinute)
			}
			select {
			case at := <-published:
				if after := at.Sub(store.lostAt); after > 6*time.Second {
					t.Errorf("emitted %d s after idle minutes and lost, the event was notified %s late", into, after)
				}
			case <-time.After(10 * time.Minute):
				t.Errorf("emitted %d s after idle minutes and lost, the event was never notified", into)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
