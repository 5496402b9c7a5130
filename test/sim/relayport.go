package sim

import (
	"context"
	"sync/atomic"
	"time"

	"eventsv2/eventqueue"
	"eventsv2/eventqueue/maintenance"
)

// relayPort is the database and the notifier as a relay sees them. It keeps a
// wake-up back while the relay is busy and brings it when the relay waits for
// one. Otherwise a wake-up may be there when the relay's timer is due, too, and
// which of the two it sees is Go's to decide.
type relayPort struct {
	*port
	waking atomic.Bool // a wake-up is at the gate

	// Guarded by the gate's lock:
	calls int       // under way
	rests time.Time // since when the relay waits
}

var (
	_ maintenance.RelayStore   = (*relayPort)(nil)
	_ maintenance.LostReporter = (*relayPort)(nil)
	_ eventqueue.Publisher     = (*relayPort)(nil)
)

// afterPass is a little longer than what a relay waits after a pass, deaf to
// wake-ups.
const afterPass = 11 * time.Millisecond

// part is a call that the relay's work is made of: after one that succeeds, the relay
// either makes the next one at once or waits for a wake-up. A call of a search for what
// is lost keeps a wake-up back as well.
func (s *relayPort) part(f func() error) error {
	w := s.p.w
	w.mu.Lock()
	s.calls++
	w.mu.Unlock()
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	s.calls--
	s.rests = time.Now().Add(afterPass)
	if err != nil {
		s.rests = w.never() // it pauses, and then it passes again
	}
	return err
}

// TakeDue implements maintenance.RelayStore.
func (s *relayPort) TakeDue(ctx context.Context, within time.Duration, limit int, await maintenance.AwaitTake) (taken []eventqueue.Notification, err error) {
	err = s.part(func() error {
		taken, err = s.port.TakeDue(ctx, within, limit, await)
		return err
	})
	return taken, err
}

// Sweep implements maintenance.RelayStore.
func (s *relayPort) Sweep(ctx context.Context, after eventqueue.EventID, limit int, lostAfter time.Duration) (swept maintenance.Swept, err error) {
	err = s.part(func() error {
		swept, err = s.port.Sweep(ctx, after, limit, lostAfter)
		return err
	})
	return swept, err
}

// TakeRound implements maintenance.RelayStore.
func (s *relayPort) TakeRound(ctx context.Context, after maintenance.RoundPlace, lostAfter time.Duration) (lost []eventqueue.Notification, next maintenance.RoundPlace, err error) {
	err = s.part(func() error {
		lost, next, err = s.port.TakeRound(ctx, after, lostAfter)
		return err
	})
	return lost, next, err
}

// Publish implements eventqueue.Publisher.
func (s *relayPort) Publish(ctx context.Context, notifications []eventqueue.Notification) error {
	return s.part(func() error { return ringer{s.p}.Publish(ctx, notifications) })
}

// ReportLost implements maintenance.LostReporter.
func (s *relayPort) ReportLost(ctx context.Context) error {
	return s.part(func() error {
		return s.do(ctx, "ReportLost", "", func() (string, error) { return "", s.db.ReportLost(ctx) })
	})
}

// Listen implements maintenance.RelayStore.
func (s *relayPort) Listen(ctx context.Context, wake func()) error {
	if err := s.do(ctx, "Listen", "", func() (string, error) { return "", nil }); err != nil {
		return err
	}
	return s.p.w.tables.listen(ctx, s.p.name, "events_v2_pending", func(string) { s.wake(ctx, wake) })
}

// wake takes a wake-up to the gate, where several are as good as one, and does
// not wait for it.
func (s *relayPort) wake(ctx context.Context, wake func()) {
	if s.waking.Swap(true) {
		return
	}
	s.p.errands.Go(func() {
		defer s.waking.Store(false)
		_ = s.p.do(ctx, call{op: "woken", ready: s.waits}, func() (string, error) { // it fails only at the end of the process
			wake()
			return "", nil
		})
	})
}

// waits is since when the relay waits for a wake-up. Called with the gate's lock
// held.
func (s *relayPort) waits() time.Time {
	if s.calls > 0 {
		return s.p.w.never()
	}
	return s.rests
}
