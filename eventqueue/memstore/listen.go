package memstore

import (
	"context"
	"fmt"
)

// listener is a Listen that waits.
type listener struct {
	store *Store
	woken chan struct{}
	cut   chan struct{}
}

// Listen implements maintenance.RelayStore.
func (s *Store) Listen(ctx context.Context, wake func()) error {
	if err := s.before(ctx, OpListen); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l := &listener{store: s, woken: make(chan struct{}, 1), cut: make(chan struct{})}
	s.db.mu.Lock()
	s.db.listeners[l] = struct{}{}
	s.db.mu.Unlock()
	defer func() {
		s.db.mu.Lock()
		defer s.db.mu.Unlock()
		delete(s.db.listeners, l)
	}()
	wake() // for commits before this call
	for {
		select {
		case <-l.woken:
			wake()
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
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}
