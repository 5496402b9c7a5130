package memstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"eventsv2/eventqueue"
)

func (db *database) keyRows() []KeyRow {
	rows := make([]KeyRow, 0, len(db.keys))
	for key, id := range db.keys {
		rows = append(rows, KeyRow{key, id})
	}
	slices.SortFunc(rows, func(a, b KeyRow) int { return compareKeys(a.UniqueKey, b.UniqueKey) })
	return rows
}

// wholeSeconds rounds up, as the database does.
func wholeSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

func compareKeys(a, b eventqueue.UniqueKey) int {
	return cmp.Or(bytes.Compare(a.Canvas[:], b.Canvas[:]), cmp.Compare(a.Key, b.Key))
}

func keyOf(e *eventqueue.NewEvent) eventqueue.UniqueKey {
	return eventqueue.UniqueKey{Canvas: e.Canvas, Key: e.UniqueKey}
}

// lockKeys locks the keys of events for a transaction, in their order. It waits for other
// transactions that have locked them. The caller holds the mutex, which is released during
// the wait.
func (tx *Tx) lockKeys(ctx context.Context, events []eventqueue.NewEvent) error {
	var keys []eventqueue.UniqueKey
	for i := range events {
		if events[i].UniqueKey != "" {
			keys = append(keys, keyOf(&events[i]))
		}
	}
	slices.SortFunc(keys, compareKeys)
	db := tx.store.db
	for _, key := range keys {
		for owner := db.keyLocks[key]; owner != nil && owner != tx; owner = db.keyLocks[key] {
			ended := make(chan struct{})
			owner.onEnd = append(owner.onEnd, func(bool) { close(ended) })
			db.mu.Unlock()
			select {
			case <-ended:
			case <-ctx.Done():
			}
			db.mu.Lock()
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := tx.usable(); err != nil {
				return err
			}
		}
		db.keyLocks[key] = tx
	}
	return nil
}

// KeysFree reports whether an Insert of events would wait for no other transaction that
// has one of their keys.
func (s *Store) KeysFree(events []eventqueue.NewEvent) bool {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	for i := range events {
		if events[i].UniqueKey != "" && s.db.keyLocks[keyOf(&events[i])] != nil {
			return false
		}
	}
	return true
}

// holder returns the event that has reserved a key, if there is one.
func (tx *Tx) holder(key eventqueue.UniqueKey, now time.Time) (eventqueue.EventID, bool) {
	id, named := tx.keys[key]
	if !named {
		id, named = tx.store.db.keys[key]
	}
	if !named {
		return 0, false
	}
	if _, queued := tx.row(id); queued {
		return id, true
	}
	expiry, kept := tx.expiries[id]
	if !kept {
		expiry, kept = tx.store.db.expiries[id]
	}
	return id, kept && expiry.ExpiresAt.After(now)
}

// name reserves a key for a new event.
func (tx *Tx) name(key eventqueue.UniqueKey, id eventqueue.EventID) {
	before, named := tx.keys[key]
	if !named {
		before = tx.store.db.keys[key]
	}
	tx.keys[key] = id
	tx.expiries[before] = ExpiryRow{}
}

// stamp records until when the key of a completed event stays reserved.
func (tx *Tx) stamp(row *Row, now time.Time) {
	if row.UniqueFor > 0 {
		tx.expiries[row.ID] = ExpiryRow{Event: row.ID, UniqueFor: row.UniqueFor, ExpiresAt: now.Add(row.UniqueFor)}
	}
}

// DeleteKeys implements maintenance.UniqueStore.
func (s *Store) DeleteKeys(ctx context.Context, after eventqueue.UniqueKey, limit int) (deleted int, next eventqueue.UniqueKey, err error) {
	err = s.atOnce(ctx, OpDeleteKeys, func() {
		now, seen := s.db.now(), 0
		for _, row := range s.db.keyRows() {
			if seen == limit || compareKeys(row.UniqueKey, after) <= 0 {
				continue
			}
			if seen++; seen == limit {
				next = row.UniqueKey
			}
			_, queued := s.db.events[row.Event]
			if queued || s.db.expiries[row.Event].ExpiresAt.After(now) || s.db.keyLocks[row.UniqueKey] != nil {
				continue
			}
			delete(s.db.keys, row.UniqueKey)
			delete(s.db.expiries, row.Event)
			deleted++
		}
	})
	if err != nil {
		return 0, eventqueue.UniqueKey{}, err
	}
	return deleted, next, nil
}
