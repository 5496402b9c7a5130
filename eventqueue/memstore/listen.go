package memstore

import (
	"context"
	"fmt"
)

// listener is a Listen that waits.
type listener struct {
	store *Store
	woken chan struct{}
	lost  chan struct{}
	cut   chan struct{}
}

// Listen implements maintenance.RelayStore.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	return s.listen(ctx, func(lost bool) {
		if !lost {
			wake()
		}
	})
}

// ListenForWorkers is fallback.Config.Listen: it calls wake as Listen does, and with lost set
// when a relay has reported lost notifications.
func (s *Store) ListenForWorkers(ctx context.Context, wake func(lost bool)) error {
	return s.listen(ctx, wake)
}

// ReportLost implements maintenance.LostReporter.
func (s *Store) ReportLost(ctx context.Context) error {
	if err := s.before(ctx, OpReportLost); err != nil {
		return fmt.Errorf("report lost notifications: %w", err)
	}
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for l := range s.db.listeners {
		notify(l.lost)
	}
	return nil
}

func (s *Store) listen(ctx context.Context, wake func(lost bool)) error {
	if err := s.before(ctx, OpListen); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l := &listener{store: s, woken: make(chan struct{}, 1), lost: make(chan struct{}, 1), cut: make(chan struct{})}
	s.db.mu.Lock()
	s.db.listeners[l] = struct{}{}
	s.db.mu.Unlock()
	defer func() {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		delete(s.db.listeners, l)
	}()
	wake(false) // for commits before this call
	for {
		select {
		case <-l.woken:
			wake(false)
		case <-l.lost:
			wake(true)
		case <-l.cut:
			return fmt.Errorf("wait for a wake-up: %w", ErrDisconnected)
		case <-ctx.Done():
			return fmt.Errorf("wait for a wake-up: %w", ctx.Err())
		}
	}
}

// wake is pg_notify: several concurrent calls may have the effect of one.
func (db *database) wake() {
	for l := range db.listeners {
		notify(l.woken)
	}
}

func notify(listener chan<- struct{}) {
	select {
	case listener <- struct{}{}:
	default:
	}
}
