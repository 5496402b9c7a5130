package protocol

import (
	"context"
	"sync"
	"testing"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/fallback"
	"eventsv2/eventqueue/maintenance"
)

// stalled is a ledger of which some statements never answer.
type stalled struct {
	*ledger
	round, lost, sweep bool

	mu    sync.Mutex
	asked int // for those
}

func (s *stalled) wait(ctx context.Context, stalls bool) error {
	if !stalls {
		return nil
	}
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (s *stalled) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) ([]eventqueue.Notification, maintenance.RoundPlace, error) {
	if err := s.wait(ctx, s.round); err != nil {
		return nil, after, err
	}
	return s.ledger.TakeRound(ctx, after, lostAfter)
}

func (s *stalled) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) ([]eventqueue.Notification, eventqueue.EventID, error) {
	if err := s.wait(ctx, s.lost); err != nil {
		return nil, after, err
	}
	return s.ledger.TakeLost(ctx, after, limit, lostAfter)
}

func (s *stalled) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (maintenance.Swept, error) {
	if err := s.wait(ctx, s.sweep); err != nil {
		return maintenance.Swept{}, err
	}
	return s.ledger.Sweep(ctx, after, limit, lostAfter)
}

func (s *stalled) Listen(ctx context.Context, _ func()) error { <-ctx.Done(); return ctx.Err() }

// again checks that what never answers is asked again, several times in ten minutes.
func (s *stalled) again(t *testing.T) {
	t.Helper()
	pass(10 * time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked < 5 {
		t.Errorf("what does not answer was asked %d times in ten minutes", s.asked)
	}
}

// TestARelayWaitsForNoStatementForEver (I13): a search that gets no answer is given up, and
// made again.
func TestARelayWaitsForNoStatementForEver(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]*stalled{"round": {round: true}, "sweep": {sweep: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				store.ledger = newLedger(0, 0)
				relay, err := maintenance.NewRelay(store, store, maintenance.RelayConfig{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(s.t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = relay.Run(ctx) }) // nil when it is stopped
				defer func() { stop(); running.Wait() }()
				store.again(t)
			})
		})
	}
}

// TestAWorkerWaitsForNoStatementForEver (I13, I19): one that finds events in the database
// does so though one kind of search gets no answer.
func TestAWorkerWaitsForNoStatementForEver(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]*stalled{"round": {round: true}, "lost": {lost: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, func(s *script) {
				store.ledger = newLedger(3, 0)
				receiver, err := fallback.New(&silentNotifier{changed: make(chan struct{}), down: true}, store, fallback.Config{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(s.t.Context())
				var delivered int
				var running sync.WaitGroup
				running.Go(func() {
					for ctx.Err() == nil {
						deliveries, _ := receiver.Pull(ctx, eventqueue.MaxPublish) // what fails is asked again
						delivered += len(deliveries)
						_ = receiver.Ack(ctx, deliveries) // they are the receiver's own
						<-time.After(100 * time.Millisecond)
					}
				})
				store.again(t)
				stop()
				running.Wait()
				if delivered != 3*eventqueue.MaxPublish {
					t.Errorf("%d of %d due events were delivered", delivered, 3*eventqueue.MaxPublish)
				}
			})
		})
	}
}
