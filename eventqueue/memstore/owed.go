package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

// Owe implements eventqueue.OwedStore.
func (s *Store) Owe(ctx context.Context, ids []eventqueue.EventID) error {
	return s.atOnce(ctx, OpOwe, func() {
		for _, id := range sortedOnce(ids) {
			if r, ok := s.db.free(id); ok {
				s.db.update(r, func(row *Row) { row.NotifiedAt = time.Time{} })
			}
		}
	})
}

// TakeOwed implements eventqueue.OwedStore.
func (s *Store) TakeOwed(ctx context.Context, ids []eventqueue.EventID) (taken []eventqueue.Notification, err error) {
	err = s.atOnce(ctx, OpTakeOwed, func() {
		for _, id := range sortedOnce(ids) {
			if r, ok := s.db.free(id); ok && owedWithin(&r.Row, s.db.now(), eventqueue.MaxRequeue) {
				taken = append(taken, s.db.notify(r))
			}
		}
	})
	return resultOf(taken, err)
}

// TakeDue implements eventqueue.RelayStore.
func (s *Store) TakeDue(ctx context.Context, within time.Duration, limit int) (taken []eventqueue.Notification, err error) {
	err = s.atOnce(ctx, OpTakeDue, func() {
		now := s.db.now()
		var due []*record
		for _, r := range s.db.events {
			if r.writer == nil && owedWithin(&r.Row, now, within) {
				due = append(due, r)
			}
		}
		slices.SortFunc(due, func(a, b *record) int {
			if c := a.DelayUntil.Compare(b.DelayUntil); c != 0 {
				return c
			}
			return byID(a, b)
		})
		for _, r := range due[:min(len(due), limit)] {
			taken = append(taken, s.db.notify(r))
		}
	})
	return resultOf(taken, err)
}

// owedWithin tells whether a row is owed a notification and due by then.
func owedWithin(r *Row, now time.Time, within time.Duration) bool {
	return r.NotifiedAt.IsZero() && !r.DelayUntil.After(now.Add(within))
}

// notify marks a row as published.
func (db *database) notify(r *record) eventqueue.Notification {
	now := db.now()
	db.update(r, func(row *Row) { row.NotifiedAt = now })
	return eventqueue.Notification{Event: r.ID, Canvas: r.Canvas}
}

// maxQuietFactor bounds the growing interval between two notifications of an
// event that waits.
const maxQuietFactor = 10

// TakeLost implements eventqueue.RelayStore.
func (s *Store) TakeLost(ctx context.Context, after eventqueue.EventID, limit int, quiet, lockTimeout time.Duration) (taken []eventqueue.Notification, next eventqueue.EventID, err error) {
	err = s.atOnce(ctx, OpTakeLost, func() {
		now := s.db.now()
		var page []*record
		page, next = s.db.page(after, limit, func(*Row) bool { return true })
		taken = s.mend(page, after, next, limit)
		for _, r := range page {
			if r.writer == nil && s.db.lost(&r.Row, now, quiet, lockTimeout) {
				taken = append(taken, s.db.notify(r))
			}
		}
	})
	if err != nil {
		return nil, 0, err
	}
	return taken, next, nil
}

// lost tells whether the notification of a row seems lost: it is due, free and
// without a rule, and has been silent for longer than an interval that doubles
// each time.
func (db *database) lost(r *Row, now time.Time, quiet, lockTimeout time.Duration) bool {
	due := latest(r.DelayUntil, r.EnqueuedAt)
	if r.NotifiedAt.IsZero() || r.Line == lineWaits || due.After(now) || !unlocked(r, lockTimeout, now) || len(db.rulesOf(r.scope())) > 0 {
		return false
	}
	rung := latest(due, r.NotifiedAt)
	if !r.LockedAt.IsZero() {
		rung = latest(rung, r.LockedAt.Add(lockTimeout))
	}
	return now.Sub(rung) > min(max(quiet, r.NotifiedAt.Sub(due)), maxQuietFactor*quiet)
}

// listener is a Listen that waits.
type listener struct {
	store *Store
	woken chan struct{}
	cut   chan struct{}
}

// Listen implements eventqueue.RelayStore.
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
	wake() // for what was committed before
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

// wake is pg_notify: several at once are as good as one.
func (db *database) wake() {
	for l := range db.listeners {
		select {
		case l.woken <- struct{}{}:
		default:
		}
	}
}

func sortedOnce(ids []eventqueue.EventID) []eventqueue.EventID {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}

// resultOf is what the caller sees: nothing when there was an error.
func resultOf[T any](result []T, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}
